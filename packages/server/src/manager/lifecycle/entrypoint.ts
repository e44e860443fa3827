import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxHandle, SandboxProcess } from "../../backends/backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { processId, processKey } from "../processes/process-key.ts";

/** Starts the program that the image of a fresh sandbox is for, as a detached process. */
export async function startEntrypoint(
  handle: SandboxHandle,
  options: CallOptions,
  env: Readonly<Record<string, string>>,
): Promise<SandboxProcess> {
  const { imageCommand: argv } = handle;
  if (argv === undefined) {
    throw new SandboxerError("bad_request", "The image has neither an entrypoint nor a command to start.", {
      hint: "Create the sandbox without entrypoint, and start a program with exec.",
    });
  }
  const unset = { timeoutMs: undefined, requestDigest: undefined };
  const kind = { execution: false, detached: true, kept: false, pty: false, codeFile: false };
  const process = await handle.exec(
    { key: processKey({ id: processId(undefined), ...kind, ...unset }), argv, env },
    options,
  );
  await process.closeStdin().catch(() => {});
  return process;
}
