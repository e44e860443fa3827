import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxHandle } from "../backends/backend.ts";
import type { CallOptions } from "../support/call-options.ts";

/** What is shown of the output of a command that fails. */
const SHOWN_BYTES = 2000;

/** Runs a profile's commands one after the other in a new sandbox. The first that fails fails the creation. */
export async function runSetup(
  handle: SandboxHandle,
  commands: readonly string[],
  options: CallOptions,
): Promise<void> {
  for (const [index, command] of commands.entries()) {
    options.signal?.throwIfAborted();
    options.onProgress?.({ phase: `setup ${index + 1} of ${commands.length}` });
    const process = await handle.exec({ key: `setup:${randomUUID()}`, argv: ["/bin/sh", "-c", command] }, options);
    await process.closeStdin().catch(() => {});
    let tail = Buffer.alloc(0);
    for await (const { offset, data } of process.output(options)) {
      tail = Buffer.concat([tail, data]).subarray(-SHOWN_BYTES);
      process.acknowledge(offset + data.length);
    }
    const { code, signal } = await process.exited;
    await process.release();
    if (code === 0) continue;
    const how = code === undefined ? `was ended by signal ${signal ?? 0}` : `exited with ${code}`;
    throw new SandboxerError("sandbox_failed", `The setup command ${JSON.stringify(command)} ${how}.`, {
      hint: "Correct the profile's setup; the end of its output is in details.output.",
      details: { command, exit_code: code ?? null, output: tail.toString("utf8") },
    });
  }
}
