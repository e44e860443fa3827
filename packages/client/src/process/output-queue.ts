import { SandboxerError } from "@sandboxer/protocol/errors";
import type { decodeFrame, OutputChunk } from "./frames.ts";

/**
 * Received output that waits for its reader, in order and without repetition, across sockets. Missing output is an
 * error, unless the process is detached, which waits for nobody.
 */
export class OutputQueue {
  readonly #from: number | undefined;
  readonly #detached: boolean;
  readonly #chunks: OutputChunk[] = [];
  #received: number | undefined;
  #taken: number;
  #acknowledged: number;

  /** `from`: the end of the output that the reader already has; undefined: the server's choice. */
  constructor(from: number | undefined, detached: boolean) {
    this.#from = from;
    this.#detached = detached;
    this.#received = from;
    this.#taken = this.#acknowledged = from ?? 0;
  }

  /** The end of the received output. */
  get received(): number | undefined {
    return this.#received;
  }

  /** The end of the output that was read. */
  get taken(): number {
    return this.#taken;
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  get bytes(): number {
    return this.isEmpty ? 0 : (this.#received ?? 0) - this.#taken;
  }

  /**
   * A socket begins at this offset. Output acknowledged by older readers may be dropped; output that this one waits for
   * may not.
   */
  begin(offset: number): void {
    if (this.#received !== undefined && offset <= this.#received) return;
    const first = this.#received === this.#from;
    if (!first) this.miss(offset);
    this.#received = offset;
    if (first) this.#taken = this.#acknowledged = offset;
  }

  /** True if it contained something new. */
  push({ stream, start, data }: ReturnType<typeof decodeFrame>): boolean {
    const received = this.#received ?? start;
    if (start > received) this.miss(start);
    // Repeated output counts once.
    const repeated = Math.max(0, received - start);
    if (repeated >= data.length) return false;
    this.#received = start + data.length;
    this.#chunks.push({ stream, data: data.subarray(repeated), offset: this.#received });
    return true;
  }

  shift(): OutputChunk | undefined {
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) this.#taken = chunk.offset;
    return chunk;
  }

  /** Throws, because the output up to `offset` is missing. */
  miss(offset: number): void {
    if (this.#detached) return;
    throw new SandboxerError(
      "internal",
      `The output from byte ${this.#received ?? 0} to ${offset} is no longer available.`,
      {
        hint: "Another reader acknowledged it, or the sandbox returned to an older checkpoint.",
        details: { from: this.#received, to: offset },
      },
    );
  }

  /** Acknowledges the read output with `send`, if it is at least this many bytes more than before. */
  acknowledge(bytes: number, send: (offset: number) => boolean): void {
    if (this.#taken - this.#acknowledged >= bytes && send(this.#taken)) this.#acknowledged = this.#taken;
  }
}
