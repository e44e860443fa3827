import { randomUUID } from "node:crypto";
import type {
  ExecCommand,
  OutputChunk,
  ProcessExit,
  SandboxHandle,
  SandboxProcess,
} from "../../../src/backends/backend.ts";

export const bash = (code: string): readonly string[] => ["bash", "-c", code];
export const python = (code: string): readonly string[] => ["python3", "-u", "-c", code];
export const node = (code: string): readonly string[] => ["node", "-e", code];

export interface Finished {
  readonly process: SandboxProcess;
  readonly exit: ProcessExit;
  readonly chunks: readonly OutputChunk[];
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts a process under a key of its own. */
export function start(
  handle: SandboxHandle,
  argv: readonly string[],
  options: Partial<ExecCommand> = {},
): Promise<SandboxProcess> {
  return handle.exec({ key: randomUUID(), argv, ...options });
}

/** Runs to the end, reading and acknowledging. */
export async function run(
  handle: SandboxHandle,
  argv: readonly string[],
  options: Partial<ExecCommand> = {},
): Promise<Finished> {
  return finish(await start(handle, argv, options));
}

export async function finish(process: SandboxProcess, options: { from?: number } = {}): Promise<Finished> {
  const chunks: OutputChunk[] = [];
  for await (const chunk of process.output(options)) {
    chunks.push(chunk);
    process.acknowledge(chunk.offset + chunk.data.length);
  }
  return {
    process,
    exit: await process.exited,
    chunks,
    stdout: textOf(chunks, "stdout"),
    stderr: textOf(chunks, "stderr"),
  };
}

export function textOf(chunks: readonly OutputChunk[], stream?: OutputChunk["stream"]): string {
  return Buffer.concat(bytesOf(chunks, stream)).toString("utf8");
}

export function bytesOf(chunks: readonly OutputChunk[], stream?: OutputChunk["stream"]): Uint8Array[] {
  return chunks.filter((chunk) => stream === undefined || chunk.stream === stream).map((chunk) => chunk.data);
}

/** Collects output in the background; `until` waits for a text in it. */
export class Follower {
  readonly chunks: OutputChunk[] = [];
  /** Settles when the output has ended for this reader. */
  readonly ended: Promise<void>;

  constructor(process: SandboxProcess, options: { from?: number; acknowledge?: boolean } = {}) {
    this.ended = this.#follow(process, options);
    this.ended.catch(() => undefined);
  }

  get text(): string {
    return textOf(this.chunks);
  }

  until(text: string): Promise<void> {
    return eventually(() => this.text.includes(text), `"${text}" in the output "${this.text.slice(-200)}"`);
  }

  async #follow(
    process: SandboxProcess,
    { from, acknowledge = true }: { from?: number; acknowledge?: boolean },
  ): Promise<void> {
    for await (const chunk of process.output(from === undefined ? {} : { from })) {
      this.chunks.push(chunk);
      if (acknowledge) process.acknowledge(chunk.offset + chunk.data.length);
    }
  }
}

export const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Polls until it holds. The deadline is for broken code, not for slow machines. */
export async function eventually(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadlineMs = performance.now() + 150_000;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`Never came: ${what}`);
    await delay(20);
  }
}

/** Until nothing changes for longer than any running program would need: data in flight arrives before. */
export async function untilStill(read: () => unknown, what: string): Promise<void> {
  await eventually(async () => {
    const before = read();
    await delay(500);
    return read() === before;
  }, what);
}

export async function readText(handle: SandboxHandle, path: string): Promise<string> {
  return Buffer.concat(await Array.fromAsync(handle.files.read(path))).toString("utf8");
}

/** Waits until the file of a counting loop has a number above `above`, and returns it. */
export async function countAbove(handle: SandboxHandle, path: string, above: number): Promise<number> {
  let count = -1;
  await eventually(async () => {
    // The loop truncates before it writes: an empty file says nothing.
    count = Number((await readText(handle, path).catch(() => "")) || -1);
    return count > above;
  }, `a count above ${above} in ${path}`);
  return count;
}

/**
 * Counts into a file and to stdout, forever. In gVisor each number is a new process: tests that only check whether it
 * runs use a longer interval.
 */
export const counter = (path: string, everySeconds = 0.1): readonly string[] =>
  bash(`i=0; while true; do i=$((i+1)); echo "$i"; echo "$i" > ${path}; sleep ${everySeconds}; done`);

/** The code of the error that a promise fails with. */
export async function errorCode(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "no error";
  } catch (thrown) {
    const code: unknown = (thrown as { code?: unknown }).code;
    return thrown instanceof Error && thrown.name === "SandboxerError" ? String(code) : `untyped: ${String(thrown)}`;
  }
}
