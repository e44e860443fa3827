import type { OutputChunk } from "../backend.ts";

export type OutputStream = OutputChunk["stream"];

/** The bounds of the agent (agent/PROTOCOL.md, "Output log"). */
export const OUTPUT_BOUNDS = { unacknowledgedBytes: 1 << 20, retainedBytes: 256 << 10, chunkBytes: 64 << 10 };
/** Small writes are joined up to this size, so that short lines cost bytes, not objects. */
const MERGE_BYTES = 4096;

interface LogChunk {
  readonly stream: OutputStream;
  readonly offset: number;
  data: Buffer;
}

export interface OutputLogState {
  readonly chunks: readonly { stream: OutputStream; offset: number; data: string }[];
  readonly end: number;
  readonly acknowledged: number;
  readonly carry: Readonly<Record<OutputStream, string>>;
  readonly finished: boolean;
}

/** Both streams of a process in one log; offsets count its bytes. It is bounded. */
export class OutputLog {
  #chunks: LogChunk[] = [];
  #end = 0;
  #acknowledged = 0;
  #finished = false;
  /** The beginning of an incomplete character. */
  readonly #carry: Record<OutputStream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  readonly #waiting = new Set<() => void>();
  /** The current reader. */
  #reader: object | undefined;

  get end(): number {
    return this.#end;
  }
  get acknowledged(): number {
    return this.#acknowledged;
  }
  get keptBytes(): number {
    return this.#end - (this.#chunks[0]?.offset ?? this.#end);
  }

  /** How many bytes were accepted; fewer than given if the log is full. */
  append(stream: OutputStream, data: Uint8Array): number {
    const held = this.#carry.stdout.length + this.#carry.stderr.length;
    const room = OUTPUT_BOUNDS.unacknowledgedBytes - (this.#end - this.#acknowledged) - held;
    if (room <= 0 || this.#finished) return 0;
    const taken = data.subarray(0, room);
    let rest: Buffer = Buffer.concat([this.#carry[stream], taken]);
    let whole = completeLength(rest);
    while (whole > 0) {
      // Everything before the end of `whole` is complete.
      const cut =
        whole <= OUTPUT_BOUNDS.chunkBytes ? whole : completeLength(rest.subarray(0, OUTPUT_BOUNDS.chunkBytes));
      this.#push(stream, rest.subarray(0, cut));
      rest = rest.subarray(cut);
      whole -= cut;
    }
    this.#carry[stream] = Buffer.from(rest);
    this.notify();
    return taken.length;
  }

  /** No more output will come: incomplete characters are sent unchanged. */
  finish(): void {
    for (const stream of ["stdout", "stderr"] as const) {
      if (this.#carry[stream].length > 0) this.#push(stream, this.#carry[stream]);
      this.#carry[stream] = Buffer.alloc(0);
    }
    this.#finished = true;
    this.notify();
  }

  acknowledge(offset: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, Math.min(offset, this.#end));
    const oldest = this.#acknowledged - OUTPUT_BOUNDS.retainedBytes;
    const kept = this.#chunks.findIndex((chunk) => chunk.offset + chunk.data.length > oldest);
    if (kept > 0) this.#chunks.splice(0, kept);
  }

  /** The bytes from `offset` to the end of their chunk, or from the oldest byte if those were dropped. */
  at(offset: number): OutputChunk | undefined {
    const chunk = this.#chunks.find((candidate) => candidate.offset + candidate.data.length > offset);
    if (chunk === undefined) return undefined;
    const from = Math.max(offset, chunk.offset);
    return { stream: chunk.stream, offset: from, data: new Uint8Array(chunk.data.subarray(from - chunk.offset)) };
  }

  /**
   * Follows it to its end. The first `next` makes this the reader and ends the older one. `mayRead`: whether anything
   * arrives now; it throws if output is no longer read. `failure`: thrown once everything that arrived was read.
   */
  async *follow(
    { from = this.#acknowledged, signal }: { readonly from?: number; readonly signal?: AbortSignal },
    { mayRead = () => true, failure }: { readonly mayRead?: () => boolean; readonly failure?: () => unknown },
  ): AsyncGenerator<OutputChunk> {
    const reader = {};
    this.#reader = reader;
    this.notify();
    const onAbort = (): void => this.notify();
    signal?.addEventListener("abort", onAbort);
    let position = from;
    try {
      for (;;) {
        if (this.#reader !== reader || signal?.aborted === true) return;
        const reads = mayRead();
        const chunk = reads ? this.at(position) : undefined;
        if (chunk !== undefined) {
          position = chunk.offset + chunk.data.length;
          yield chunk;
        } else if (this.#finished && reads) {
          return;
        } else {
          const failed = failure?.();
          if (failed !== undefined) throw failed;
          await this.changed();
        }
      }
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Settles at the next change. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  notify(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }

  capture(): OutputLogState {
    return {
      chunks: this.#chunks.map((chunk) => ({ ...chunk, data: chunk.data.toString("latin1") })),
      end: this.#end,
      acknowledged: this.#acknowledged,
      carry: { stdout: this.#carry.stdout.toString("latin1"), stderr: this.#carry.stderr.toString("latin1") },
      finished: this.#finished,
    };
  }

  static restore(state: OutputLogState): OutputLog {
    const log = new OutputLog();
    log.#chunks = state.chunks.map((chunk) => ({ ...chunk, data: Buffer.from(chunk.data, "latin1") }));
    log.#end = state.end;
    log.#acknowledged = state.acknowledged;
    log.#carry.stdout = Buffer.from(state.carry.stdout, "latin1");
    log.#carry.stderr = Buffer.from(state.carry.stderr, "latin1");
    log.#finished = state.finished;
    return log;
  }

  #push(stream: OutputStream, data: Buffer): void {
    const last = this.#chunks.at(-1);
    if (last?.stream === stream && last.data.length + data.length <= MERGE_BYTES) {
      last.data = Buffer.concat([last.data, data]);
    } else {
      this.#chunks.push({ stream, offset: this.#end, data: Buffer.from(data) });
    }
    this.#end += data.length;
  }
}

/** How many bytes of `bytes` can be used without cutting a UTF-8 character at the end. */
function completeLength(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf5 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return needed > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
