import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import type { ProcessExit, SandboxHandle } from "../../backends/backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";

/** How much output of a failed command is shown. */
const SHOWN_BYTES = 2000;

/** Limit for each command: a command that waits forever would keep its sandbox forever. */
const COMMAND_LIMIT_MS = 10 * 60_000;

export interface SetupOptions extends CallOptions {
  readonly limitMs?: number;
  /** Variables of the server; the sandbox's own come before them. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A command and the end of its output so far. */
interface Running {
  readonly command: string;
  tail: Buffer;
}

/** Runs a profile's setup commands in order in a new sandbox. The first failure fails the creation. */
export async function runSetup(
  handle: SandboxHandle,
  commands: readonly string[],
  options: SetupOptions,
): Promise<void> {
  for (const [index, command] of commands.entries()) {
    options.signal?.throwIfAborted();
    options.onProgress?.({ phase: `setup ${index + 1} of ${commands.length}` });
    const running: Running = { command, tail: Buffer.alloc(0) };
    const { code, signal } = await withinLimit(running, options, (limited) =>
      run(handle, running, options.env, limited),
    );
    if (code === 0) continue;
    throw failed(running, code === undefined ? `was ended by signal ${signal ?? 0}` : `exited with ${code}`, code);
  }
}

async function run(
  handle: SandboxHandle,
  running: Running,
  env: Readonly<Record<string, string>> = {},
  signal: AbortSignal,
): Promise<ProcessExit> {
  const argv = ["/bin/sh", "-c", running.command];
  const process = await handle.exec({ key: `setup:${randomUUID()}`, argv, env }, { signal });
  await process.closeStdin().catch(() => {});
  for await (const { offset, data } of process.output({ signal })) {
    running.tail = Buffer.concat([running.tail, data]).subarray(-SHOWN_BYTES);
    process.acknowledge(offset + data.length);
  }
  const exit = await process.exited;
  await process.release();
  return exit;
}

/** A command that is no longer awaited ends with its sandbox. */
async function withinLimit<Result>(
  running: Running,
  { signal, limitMs = COMMAND_LIMIT_MS }: SetupOptions,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(failed(running, `did not end within ${limitMs / 1000} s`)), limitMs);
  const either = signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]);
  try {
    return await unlessAborted(work(either), either);
  } finally {
    clearTimeout(timer);
  }
}

function failed({ command, tail }: Running, how: string, code?: number): SandboxerError {
  return new SandboxerError("sandbox_failed", `The setup command ${JSON.stringify(command)} ${how}.`, {
    hint: "Correct the profile's setup; details.output has the end of the output.",
    details: { command, exit_code: code ?? null, output: tail.toString("utf8") },
  });
}
