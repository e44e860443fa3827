import { Buffer } from "node:buffer";
import type { OutputChunk } from "../backend.ts";
import { MalformedFrameError } from "./payload.ts";

/** When chunks begin to be joined, and how many may be left after that. */
const COMPACT_AT = 1024;
const MAX_CHUNKS = 10_000;

/** One reader of a process's output: received but unread data, and how far the agent may send. */
export class OutputReader {
  /** The offset after the last received byte. */
  position: number;
  /** The offset after the last read byte. */
  consumed: number;
  limit: number;
  ended = false;
  #chunks: OutputChunk[] = [];
  #compactAt = COMPACT_AT;
  #wake: () => void = () => {};

  constructor(from: number) {
    this.position = from;
    this.consumed = from;
    this.limit = from;
  }

  startAt(from: number, windowBytes: number): void {
    this.position = from;
    this.consumed = from;
    this.limit = from + windowBytes;
  }

  widen(windowBytes: number): void {
    this.limit = Math.max(this.limit, this.consumed + windowBytes);
  }

  push(chunk: OutputChunk): void {
    const end = chunk.offset + chunk.data.length;
    if (chunk.offset < this.position || end > this.limit || chunk.data.length === 0) {
      throw new MalformedFrameError("output outside of its window");
    }
    this.position = end;
    this.#chunks.push(chunk);
    if (this.#chunks.length >= this.#compactAt) this.#compact();
    this.wake();
  }

  take(): OutputChunk | undefined {
    return this.#chunks.shift();
  }

  /** Waits until something has changed. */
  more(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  wake(): void {
    this.#wake();
  }

  end(): void {
    this.ended = true;
    this.#wake();
  }

  /** Unread single bytes would cost a hundred times their size as separate chunks. */
  #compact(): void {
    const groups: OutputChunk[][] = [];
    for (const chunk of this.#chunks) {
      const group = groups.at(-1);
      const last = group?.at(-1);
      const follows = last?.stream === chunk.stream && last.offset + last.data.length === chunk.offset;
      if (group !== undefined && follows) group.push(chunk);
      else groups.push([chunk]);
    }
    this.#chunks = groups.map((group) => ({ ...group[0]!, data: Buffer.concat(group.map(({ data }) => data)) }));
    if (this.#chunks.length > MAX_CHUNKS) throw new MalformedFrameError("output in too many pieces");
    this.#compactAt = 2 * this.#chunks.length + COMPACT_AT;
  }
}
