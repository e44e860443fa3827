import { SandboxerError } from "@sandboxer/protocol";
import type { OutputChunk, ProcessExit, SandboxProcess } from "../../backends/backend.ts";

/** Thrown to a reader when its sandbox is about to be saved or moved: unacknowledged output is kept. */
export class Moving extends Error {}

interface Reader {
  readonly stop: AbortController;
  /** Stopped by the slot, or by itself. */
  readonly stopped: AbortSignal;
  /** Reads only so that the process does not block: it yields to others, and continues through a save. */
  readonly background: boolean;
}

export interface FollowOptions {
  readonly from: number;
  readonly signal?: AbortSignal;
  readonly background?: boolean;
  /** Called at once when the reader is stopped; the next chunk then gives the reason. */
  readonly onStop?: () => void;
  /** Called after the last chunk, while the reader still has the slot. */
  readonly onEnd?: (exit: ProcessExit) => void;
}

/**
 * The single reader of a process. A new reader takes over, and the old one is told; reading the buffered output only
 * interrupts it.
 */
export class ReaderSlot {
  readonly #process: SandboxProcess;
  /** Resolves when output may be read. */
  readonly #hold: () => Promise<void>;
  readonly #onFree: () => void;
  #reader: Reader | undefined;
  #looks = 0;
  #looking: Promise<unknown> = Promise.resolve();

  constructor(process: SandboxProcess, hooks: { hold: () => Promise<void>; onFree: () => void }) {
    this.#process = process;
    this.#hold = hooks.hold;
    this.#onFree = hooks.onFree;
  }

  get taken(): boolean {
    return this.#reader !== undefined;
  }

  /** Whether a reader has still to be told of the end. */
  get followed(): boolean {
    return this.#reader?.background === false && !this.#reader.stopped.aborted;
  }

  /** Output from an offset to its end. Throws {@link Moving} before a save, and when another reader takes over. */
  async *follow(options: FollowOptions): AsyncGenerator<OutputChunk> {
    const { signal, background = false } = options;
    const stop = new AbortController();
    const stopped = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
    const reader: Reader = { stop, stopped, background };
    this.#reader?.stop.abort(new SandboxerError("sandbox_in_use", "Another reader took over the output."));
    this.#reader = reader;
    if (options.onStop !== undefined) stop.signal.addEventListener("abort", options.onStop, { once: true });
    let position = options.from;
    try {
      for (let looks = -1; !stopped.aborted;) {
        await this.#looking;
        const { exit } = this.#process;
        if (exit !== undefined && position >= exit.outputEnd) {
          await this.#hold();
          if (stopped.aborted) break;
          return options.onEnd?.(exit);
        }
        // Only a read of the buffer ends the output early; any other reason would loop forever.
        if (looks === this.#looks)
          throw new SandboxerError("sandbox_failed", "The output stream closed before its last byte.");
        looks = this.#looks;
        for await (const chunk of this.#process.output({ from: position, signal: stopped })) {
          await this.#hold();
          if (stopped.aborted) break;
          position = chunk.offset + chunk.data.length;
          yield chunk;
          if (stopped.aborted) break;
        }
      }
      if (stop.signal.aborted) throw stop.signal.reason as Error;
    } finally {
      if (this.#reader === reader) {
        this.#reader = undefined;
        if (!background) this.#onFree();
      }
    }
  }

  /** The buffered output from an offset on. A log is small enough to hold in memory. */
  look(from: number | undefined): Promise<{ start: number; end: number; chunks: readonly OutputChunk[] }> {
    const look = this.#looking.then(async () => {
      await this.#hold();
      const bounds = await this.#process.bounds();
      const start = Math.min(Math.max(from ?? this.#process.acknowledged, bounds.start), bounds.end);
      const chunks: OutputChunk[] = [];
      let end = start;
      if (end === bounds.end) return { start, end, chunks };
      this.#looks += 1;
      for await (const chunk of this.#process.output({ from: start })) {
        chunks.push(chunk);
        end = chunk.offset + chunk.data.length;
        if (end >= bounds.end) break;
      }
      return { start, end, chunks };
    });
    this.#looking = look.catch(() => {});
    return look;
  }

  /** Tells a reader why it ends; a background reader continues. */
  stop(reason: Error): void {
    if (this.#reader?.background === false) this.#reader.stop.abort(reason);
  }
}
