import type { OutputChunk, ProcessExit, SandboxProcess } from "../../backends/backend.ts";

export const EXECUTION_KEY_PREFIX = "execution:";
const SIGKILL = 9;

/**
 * One run of code, from its start until the client has been told of its end. It is the same one after a restore: its
 * process and the output that nobody has seen are part of the sandbox.
 */
export class Execution {
  readonly id: string;
  readonly #process: SandboxProcess;
  #doneDelivered = false;

  constructor(process: SandboxProcess) {
    this.id = process.key.slice(EXECUTION_KEY_PREFIX.length);
    this.#process = process;
  }

  get running(): boolean {
    return this.#process.exit === undefined;
  }

  get exit(): ProcessExit | undefined {
    return this.#process.exit;
  }

  /** Rejects when the sandbox ends first. */
  get exited(): Promise<ProcessExit> {
    return this.#process.exited;
  }

  /** The offset up to which a client has confirmed the output. */
  get delivered(): number {
    return this.#process.acknowledged;
  }

  /** Whether the client has all of it, and knows that it has ended. */
  get doneDelivered(): boolean {
    return this.#doneDelivered;
  }

  markDoneDelivered(): void {
    this.#doneDelivered = true;
  }

  output(options: { from?: number; signal?: AbortSignal }): AsyncIterable<OutputChunk> {
    return this.#process.output(options);
  }

  confirm(offset: number): void {
    this.#process.acknowledge(offset);
  }

  writeStdin(data: Uint8Array): Promise<void> {
    return this.#process.writeStdin(data);
  }

  kill(): Promise<void> {
    return this.#process.signal(SIGKILL, "group");
  }

  release(): Promise<void> {
    return this.#process.release();
  }
}
