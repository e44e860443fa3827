import type { Readable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import { nextEvent } from "../../../support/next-event.ts";
import type { ExtensionProcess } from "../extension.ts";

/** Starts `sh -c SCRIPT sh ARGS…` inside. Arguments never become part of the script. */
export type StartShell = (script: string, args: readonly string[]) => Promise<ExtensionProcess>;

export interface ShellResult {
  readonly code: number | undefined;
  readonly stdout: Buffer;
  readonly stderr: string;
}

const MAX_STDOUT_BYTES = 16 << 20;
const MAX_STDERR_BYTES = 64 << 10;

/** Runs a script to its end and returns its output, which is bounded: the inside may be hostile. */
export async function runShell(
  start: StartShell,
  script: string,
  args: readonly string[],
  input?: AsyncIterable<Uint8Array>,
): Promise<ShellResult> {
  const process = await start(script, args);
  try {
    const [{ code }, stdout, stderr] = await Promise.all([
      process.exited,
      collect(process.stdout, MAX_STDOUT_BYTES),
      collect(process.stderr, MAX_STDERR_BYTES),
      feed(process, input),
    ]);
    return { code, stdout, stderr: stderr.toString("utf8") };
  } catch (thrown) {
    process.abandon();
    throw thrown;
  }
}

/** A program that ends before it has read everything explains that by its exit code; the broken pipe adds nothing. */
async function feed({ stdin }: ExtensionProcess, input: AsyncIterable<Uint8Array> | undefined): Promise<void> {
  stdin.on("error", () => {});
  for await (const data of input ?? []) {
    if (stdin.destroyed || stdin.errored !== null) return;
    if (!stdin.write(data)) await nextEvent(stdin, ["drain", "close"]);
  }
  stdin.end();
}

export async function collect(stream: Readable, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes)
      throw new SandboxerError("too_large", `A program in the sandbox printed more than ${maxBytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
