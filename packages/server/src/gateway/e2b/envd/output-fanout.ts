import type { ManagedProcess } from "../../../manager/processes/managed-process.ts";

/** Chunks that wait for one reader; then the process waits too. Few, because a client may have hundreds of readers. */
const MAX_WAITING = 4;
/** A reader that holds up others for this long is cut off. */
const PATIENCE_MS = 30_000;

/** How the output ended: with the process, or because the sandbox was paused or deleted. */
export type OutputEnd = "exited" | "cut";

export interface SharedChunk {
  readonly stream: "stdout" | "stderr";
  /** In base64, made once for all readers. */
  readonly data: string;
}

/** Output of a process for one of its readers, from when it came. */
export class OutputReader {
  readonly #waiting: SharedChunk[] = [];
  readonly #onLeave: () => void;
  #end: OutputEnd | undefined;
  #wake = Promise.withResolvers<void>();
  #room = Promise.withResolvers<void>();

  constructor(onLeave: () => void) {
    this.#onLeave = onLeave;
  }

  /** The chunks, then how the output ended. Undefined: the reader left. */
  async next(signal: AbortSignal): Promise<SharedChunk | OutputEnd | undefined> {
    for (;;) {
      if (signal.aborted) return undefined;
      const chunk = this.#waiting.shift();
      if (chunk !== undefined) {
        this.#room.resolve();
        return chunk;
      }
      if (this.#end !== undefined) return this.#end;
      const { promise, resolve } = this.#wake;
      signal.addEventListener("abort", () => resolve(), { once: true });
      await promise;
    }
  }

  leave(): void {
    this.#onLeave();
    this.#room.resolve();
  }

  give(chunk: SharedChunk): void {
    this.#waiting.push(chunk);
    this.#notify();
  }

  finish(end: OutputEnd): void {
    this.#end ??= end;
    this.#notify();
    this.#room.resolve();
  }

  get isFull(): boolean {
    return this.#end === undefined && this.#waiting.length >= MAX_WAITING;
  }

  /** Resolves when it takes another chunk, or has ended. */
  get room(): Promise<void> {
    if (!this.isFull) return Promise.resolve();
    this.#room = Promise.withResolvers();
    return this.#room.promise;
  }

  #notify(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }
}

/**
 * Gives the output of one process to several readers: a process itself has one. Nothing is replayed, and output is
 * dropped while there is no reader. A single slow reader makes its process wait; one that holds up others is cut off.
 */
export class OutputFanout {
  readonly #process: ManagedProcess;
  readonly #chunkBytes: number;
  readonly #patienceMs: number;
  readonly #readers = new Set<OutputReader>();
  #reading: AbortController | undefined;

  constructor(process: ManagedProcess, chunkBytes: number, patienceMs = PATIENCE_MS) {
    this.#process = process;
    this.#chunkBytes = chunkBytes;
    this.#patienceMs = patienceMs;
  }

  /** `from`: where the first reader begins; later ones begin where the output is then. */
  attach(from: number): OutputReader {
    const reader = new OutputReader(() => this.#leave(reader));
    this.#readers.add(reader);
    if (this.#reading === undefined) {
      this.#reading = new AbortController();
      void this.#read(from, this.#reading);
    }
    return reader;
  }

  #leave(reader: OutputReader): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#reading?.abort();
    this.#reading = undefined;
  }

  async #read(from: number, reading: AbortController): Promise<void> {
    const process = this.#process;
    let end: OutputEnd = "exited";
    try {
      for await (const { stream, offset, data } of process.follow({ from, signal: reading.signal })) {
        for (let start = 0; start < data.length; start += this.#chunkBytes) {
          const piece = Buffer.from(
            data.buffer,
            data.byteOffset + start,
            Math.min(this.#chunkBytes, data.length - start),
          );
          await this.#share({ stream, data: piece.toString("base64") });
        }
        process.acknowledge(offset + data.length);
      }
    } catch {
      end = "cut";
    }
    if (this.#reading !== reading) return;
    this.#reading = undefined;
    for (const reader of this.#readers) reader.finish(end);
    this.#readers.clear();
  }

  async #share(chunk: SharedChunk): Promise<void> {
    for (const reader of this.#readers) reader.give(chunk);
    for (const reader of [...this.#readers].filter(({ isFull }) => isFull)) await this.#untilRoom(reader);
  }

  async #untilRoom(reader: OutputReader): Promise<void> {
    const timer = setInterval(() => {
      if (this.#readers.size < 2) return;
      reader.finish("cut");
      this.#readers.delete(reader);
    }, this.#patienceMs);
    try {
      await reader.room;
    } finally {
      clearInterval(timer);
    }
  }
}
