import { SandboxerError } from "@sandboxer/protocol";
import type { OutputBounds, OutputChunk, ProcessExit, SandboxProcess } from "../backend.ts";
import { SerialQueue } from "../../support/serial-queue.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { Request } from "./frame-types.ts";
import { OutputReader } from "./output-reader.ts";
import { MalformedFrameError, PayloadWriter } from "./payload.ts";

/** How far the agent may run ahead of the reader. */
const WINDOW_BYTES = 512 * 1024;
/** Well below the agent's limit of unacknowledged output, so that its log does not fill up. */
const ACKNOWLEDGE_BYTES = 256 * 1024;
const STDIN_FRAME_BYTES = 64 * 1024;
/** A process that does not read its stdin makes its writer wait at most this long. */
const STDIN_TIMEOUT_MS = 24 * 3_600_000;

export interface AgentProcessRecord {
  readonly process: number;
  readonly pid: number;
  readonly key: string;
  readonly acknowledged: number;
  readonly exit: ProcessExit | undefined;
}

/** The part of the process table that a process uses. */
export interface ProcessTableAccess {
  bounds(process: number): Promise<OutputBounds>;
  forget(process: number): void;
}

/** A process that the agent started, with the window of its output log. */
export class AgentProcess implements SandboxProcess {
  readonly key: string;
  readonly pid: number;
  readonly process: number;
  readonly exited: Promise<ProcessExit>;
  readonly #connection: AgentConnection;
  readonly #exited = Promise.withResolvers<ProcessExit>();
  readonly #onRelease: () => void;
  readonly #bounds: () => Promise<OutputBounds>;
  #exit: ProcessExit | undefined;
  #acknowledged: number;
  #toldAcknowledged: number;
  /** The newest reader; it gets the agent's output once its seek was answered. */
  #latest: OutputReader | undefined;
  #reader: OutputReader | undefined;
  readonly #stdin = new SerialQueue();

  constructor(connection: AgentConnection, record: AgentProcessRecord, table: ProcessTableAccess) {
    this.#connection = connection;
    this.#onRelease = () => table.forget(record.process);
    this.#bounds = () => table.bounds(record.process);
    this.process = record.process;
    this.pid = record.pid;
    this.key = record.key;
    this.#acknowledged = record.acknowledged;
    this.#toldAcknowledged = record.acknowledged;
    this.exited = this.#exited.promise;
    this.exited.catch(() => {});
    if (record.exit !== undefined) this.onExit(record.exit);
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  get exit(): ProcessExit | undefined {
    return this.#exit;
  }

  async *output(options: { from?: number; signal?: AbortSignal } = {}): AsyncGenerator<OutputChunk> {
    const asked = options.from ?? this.#acknowledged;
    const reader = new OutputReader(asked);
    this.#replaceReader(reader);
    const onAbort = (): void => {
      reader.end();
      this.#tellAcknowledged();
    };
    options.signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await this.#seek(reader, asked);
      while (!reader.ended && !options.signal?.aborted) {
        const chunk = reader.take();
        if (chunk !== undefined) {
          yield chunk;
          reader.consumed = chunk.offset + chunk.data.length;
          if (reader.limit - reader.consumed < WINDOW_BYTES / 2) this.#sendWindow();
          continue;
        }
        if (this.#exit !== undefined && reader.position >= this.#exit.outputEnd) return;
        if (this.#connection.failure !== undefined) throw this.#connection.failure;
        await reader.more();
      }
    } finally {
      options.signal?.removeEventListener("abort", onAbort);
      if (this.#latest === reader) this.#replaceReader(undefined);
    }
  }

  bounds(): Promise<OutputBounds> {
    return this.#bounds();
  }

  /**
   * Each acknowledgement wakes the sandbox, so it is sent when it frees much of the log, or when nothing is on its way
   * to the reader that would be acknowledged later.
   */
  acknowledge(offset: number): void {
    if (offset <= this.#acknowledged) return;
    this.#acknowledged = offset;
    const moreToCome = this.#reader !== undefined && offset < this.#reader.position;
    if (!moreToCome || offset - this.#toldAcknowledged >= ACKNOWLEDGE_BYTES) this.#tellAcknowledged();
  }

  /** Writes are sent in the order of the calls, one frame at a time, as the agent demands. */
  writeStdin(data: Uint8Array): Promise<void> {
    return this.#stdin.run(async () => {
      for (let start = 0; start < data.length; start += STDIN_FRAME_BYTES) {
        const payload = new PayloadWriter().u32(this.process).bytes(data.subarray(start, start + STDIN_FRAME_BYTES));
        await this.#connection.request(Request.stdin, payload, { timeoutMs: STDIN_TIMEOUT_MS });
      }
    });
  }

  closeStdin(): Promise<void> {
    return this.#stdin.run(() => this.#request(Request.stdinClose, new PayloadWriter().u32(this.process)));
  }

  signal(signal: number, scope: "process" | "group"): Promise<void> {
    const payload = new PayloadWriter().u32(this.process).u32(signal);
    return this.#request(Request.signal, payload.u8(scope === "group" ? 1 : 0));
  }

  resize(rows: number, columns: number): Promise<void> {
    return this.#request(Request.resize, new PayloadWriter().u32(this.process).u16(rows).u16(columns));
  }

  async release(): Promise<void> {
    if (this.#exit === undefined) throw new SandboxerError("wrong_state", "The process is still running.");
    await this.#request(Request.forget, new PayloadWriter().u32(this.process));
    this.#onRelease();
  }

  onOutput(stream: number, offset: number, data: Buffer): void {
    if (stream !== 1 && stream !== 2) throw new MalformedFrameError(`unknown stream ${stream}`);
    this.#reader?.push({ stream: stream === 1 ? "stdout" : "stderr", offset, data });
  }

  onExit(exit: ProcessExit): void {
    if (this.#exit !== undefined) return;
    this.#exit = exit;
    this.#exited.resolve(exit);
    this.#reader?.wake();
  }

  onConnectionFailed(error: SandboxerError): void {
    this.#exited.reject(error);
    this.#reader?.wake();
  }

  async #seek(reader: OutputReader, asked: number): Promise<void> {
    // Acknowledged output may be dropped; the window must begin where the log does.
    const from = asked < this.#acknowledged ? Math.max(asked, (await this.#bounds()).start) : asked;
    reader.startAt(from, WINDOW_BYTES);
    const payload = new PayloadWriter().u32(this.process).u8(1).u64(from).u64(this.#acknowledged).u64(reader.limit);
    // Output in flight for an earlier reader comes before this reply, and is dropped.
    await this.#connection.ask(Request.window, payload, () => {
      if (this.#latest === reader) this.#reader = reader;
    });
  }

  #tellAcknowledged(): void {
    if (this.#toldAcknowledged < this.#acknowledged) this.#sendWindow();
  }

  #sendWindow(): void {
    this.#toldAcknowledged = this.#acknowledged;
    // Also while its seek is in progress: an older limit after the seek would close the window again.
    const reader = this.#latest;
    if (reader === this.#reader) reader?.widen(WINDOW_BYTES);
    const payload = new PayloadWriter().u32(this.process).u8(0).u64(0);
    this.#connection.send(Request.window, payload.u64(this.#acknowledged).u64(reader?.limit ?? 0));
  }

  #replaceReader(reader: OutputReader | undefined): void {
    const old = this.#latest;
    this.#latest = reader;
    this.#reader = undefined;
    old?.end();
    this.#tellAcknowledged();
  }

  async #request(type: (typeof Request)[keyof typeof Request], payload: PayloadWriter): Promise<void> {
    await this.#connection.request(type, payload);
  }
}
