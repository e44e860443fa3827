import { SandboxerError } from "@sandboxer/protocol/errors";
import type { ProcessRecord } from "../records.ts";
import type { CallOptions } from "../wire/call-types.ts";
import { fromWire } from "../wire/naming.ts";
import { collect, MAX_OUTPUT_BYTES, type CollectedOutput } from "./collect.ts";
import type { OutputChunk } from "./frames.ts";
import { linesOf, type OutputLine } from "./lines.ts";
import { ProcessLink, type ExitStatus, type LinkOptions } from "./process-link.ts";

export interface ExecResult extends CollectedOutput, ExitStatus {
  readonly processId: string;
}

export interface PtySize {
  readonly rows: number;
  readonly columns: number;
}

export interface ProcessOptions extends LinkOptions {
  readonly pid: number;
  /** Kills the process. */
  readonly signal: AbortSignal | undefined;
}

/**
 * A process in a sandbox. Its output is read by one of `chunks`, `lines`, `collect` and `wait`, once; a lost connection
 * is restored automatically. A process whose output is not read blocks when 1 MiB of it waits, unless it was detached.
 */
export class SandboxProcess {
  readonly id: string;
  readonly pid: number;
  readonly #options: ProcessOptions;
  readonly #link: ProcessLink;
  #reading = false;
  #stdin: WritableStream<Uint8Array | string> | undefined;

  constructor(options: ProcessOptions) {
    this.id = options.processId;
    this.pid = options.pid;
    this.#options = options;
    this.#link = new ProcessLink(options);
    const { signal } = options;
    if (signal?.aborted === true) this.#abort(signal);
    else signal?.addEventListener("abort", () => this.#abort(signal), { once: true, signal: this.#link.over });
  }

  /** How far its output was read: `sandbox.process(id, { offset })` continues exactly here. */
  get offset(): number {
    return this.#link.offset;
  }

  /** Its exit, once its output was read to the end. */
  get exit(): ExitStatus | undefined {
    return this.#link.exit;
  }

  /** Its output as it arrives, as bytes. Leaving the loop detaches: the process keeps running. */
  async *chunks(): AsyncGenerator<OutputChunk, void, undefined> {
    if (this.#reading) throw new SandboxerError("wrong_state", "The output of this process is already being read.");
    this.#reading = true;
    try {
      for (let chunk = await this.#link.next(); chunk !== undefined; chunk = await this.#link.next()) yield chunk;
    } finally {
      if (this.#link.exit === undefined) this.#link.detach();
    }
  }

  /** Its output as lines, of both streams or of one. */
  async *lines(stream?: OutputChunk["stream"]): AsyncGenerator<string, void, undefined> {
    for await (const line of this.outputLines()) {
      if (stream === undefined || line.stream === stream) yield line.text;
    }
  }

  /** Its output as lines with their streams. */
  outputLines(): AsyncGenerator<OutputLine, void, undefined> {
    return linesOf(this.chunks());
  }

  /** Reads everything to the end. A failing program is a result, not an error. */
  async collect({
    maxOutputBytes = MAX_OUTPUT_BYTES,
  }: { maxOutputBytes?: number | undefined } = {}): Promise<ExecResult> {
    const output = await collect(this.chunks(), maxOutputBytes);
    return { processId: this.id, ...output, ...this.#ended() };
  }

  /** Waits for its end, and drops its output. */
  async wait(): Promise<ExitStatus> {
    for await (const _ of this.chunks());
    return this.#ended();
  }

  /** Writes to its stdin; resolves when the process has read it. */
  async write(data: string | Uint8Array): Promise<void> {
    this.#link.start();
    await this.#link.stdin.write(typeof data === "string" ? new TextEncoder().encode(data) : data);
  }

  /** Closes its stdin after everything that was written. */
  closeStdin(): void {
    this.#link.start();
    this.#link.stdin.close();
  }

  /** Its stdin as a stream, for `pipeTo`. */
  get stdin(): WritableStream<Uint8Array | string> {
    this.#stdin ??= new WritableStream({
      write: (data) => this.write(data),
      close: () => this.closeStdin(),
    });
    return this.#stdin;
  }

  /** Sends a signal, by default SIGKILL, to it and its children. */
  async kill(signal: string | number = "SIGKILL", options: CallOptions = {}): Promise<void> {
    await this.#options.calls.call("signalProcess", { params: this.#params, body: { signal } }, options);
  }

  /** Resizes its terminal. */
  async resize({ rows, columns }: PtySize, options: CallOptions = {}): Promise<void> {
    await this.#options.calls.call("resizeProcess", { params: this.#params, body: { rows, columns } }, options);
  }

  /** Stops reading; the process keeps running. Returns what `sandbox.process` needs to attach again. */
  detach(): { readonly id: string; readonly offset: number } {
    this.#link.detach();
    return { id: this.id, offset: this.offset };
  }

  /** The server's record of it. */
  async info(options: CallOptions = {}): Promise<ProcessRecord> {
    const record = await this.#options.calls.call("getProcess", { params: this.#params }, options);
    return fromWire(record);
  }

  /** Kills it if it runs, and deletes its output. */
  async release(options: CallOptions = {}): Promise<void> {
    this.#link.detach();
    await this.#options.calls.call("releaseProcess", { params: this.#params }, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch((error: unknown) => {
      if (!isGone(error)) throw error;
    });
  }

  get #params(): { id: string; process_id: string } {
    return { id: this.#options.calls.sandboxId, process_id: this.id };
  }

  #ended(): ExitStatus {
    const exit = this.#link.exit;
    if (exit === undefined) throw new SandboxerError("wrong_state", "The process was detached before it ended.");
    return exit;
  }

  #abort(signal: AbortSignal): void {
    if (this.#link.exit !== undefined) return;
    this.#link.fail(signal.reason);
    this.kill().catch(() => {});
  }
}

function isGone(error: unknown): boolean {
  const gone = ["process_not_found", "sandbox_not_found", "sandbox_destroyed", "wrong_state"];
  return error instanceof SandboxerError && gone.includes(error.code);
}
