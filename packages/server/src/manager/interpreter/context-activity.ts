import type { OutputChunk } from "../../backends/backend.ts";
import { Places } from "../../support/places.ts";
import { FrameReader, type Frame, type FrameSource } from "./frames.ts";

/** A cell whose beginning nobody has seen. */
const UNKNOWN_CELL = "unknown";

/**
 * The cell that an interpreter runs, according to its output. A reader that follows a cell passes its frames on; while
 * nobody follows, the server reads the output itself.
 */
export class ContextActivity {
  /** One reader follows a cell at a time. */
  readonly turns = new Places(1);
  /** Whether the interpreter is being killed. Another reader than that of its cell reads its last output. */
  isStopping = false;
  #cell: string | undefined;
  /** Whether the interpreter has begun a cell and not ended it. */
  #executing = false;
  /** Whether a beginning or an end was seen. */
  #known = false;
  /** To be sent when its cell begins: before that, it would end an interpreter that is still starting. */
  #interrupt: { readonly cell: string; readonly send: () => void } | undefined;
  #reader: FrameSource | undefined;
  /** Where the reader is. */
  #position = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #onEnd: () => void;
  readonly #newReader: () => FrameSource;

  /** `onEnd`: a cell has ended. */
  constructor(onEnd: () => void, newReader: () => FrameSource = () => new FrameReader()) {
    this.#onEnd = onEnd;
    this.#newReader = newReader;
  }

  /** The cell that runs, or was sent to the interpreter. */
  get cell(): string | undefined {
    return this.#cell;
  }

  mayRun(cell: string): boolean {
    return this.#cell === cell || this.#cell === UNKNOWN_CELL;
  }

  /** Resolves when no cell runs. */
  idle(): Promise<void> {
    return this.#cell === undefined ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** A cell was sent. */
  sent(cell: string): void {
    this.#known = true;
    this.#cell = cell;
    this.#reader = undefined;
  }

  /** A cell that began before this server read along, unless its end was already seen. */
  recall(cell: string): void {
    if (!this.#known) [this.#cell, this.#executing] = [cell, true];
  }

  /** Sends an interrupt to the cell, if there is one: now, or at its beginning. */
  interrupt(send: () => void): void {
    if (this.#executing) send();
    else if (this.#cell !== undefined) this.#interrupt = { cell: this.#cell, send };
  }

  /** The interpreter has ended. */
  ended(): void {
    this.#known = true;
    this.#executing = false;
    if (this.#cell === undefined) return;
    this.#cell = undefined;
    this.#onEnd();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** The next frame of the interpreter. */
  note(frame: Frame): void {
    if (frame.f === "start") {
      [this.#known, this.#executing] = [true, true];
      // Another one may have been sent behind it.
      this.#cell ??= frame.id;
      if (this.#interrupt?.cell !== frame.id) return;
      this.#interrupt.send();
      this.#interrupt = undefined;
    } else if (frame.f === "end") {
      this.#executing = false;
      if (this.mayRun(frame.id)) this.ended();
    } else if (frame.f !== "ready") {
      // Between cells an interpreter is silent.
      this.#executing = true;
      this.#cell ??= UNKNOWN_CELL;
    }
  }

  /** Output that nobody follows. */
  see(chunk: OutputChunk): void {
    const end = chunk.offset + chunk.data.length;
    if (this.#reader !== undefined && end <= this.#position) return;
    const isNext = this.#reader !== undefined && this.#position === chunk.offset;
    const reader = isNext && this.#reader !== undefined ? this.#reader : this.#newReader();
    [this.#reader, this.#position] = [reader, end];
    for (const { frame } of reader.read(chunk)) this.note(frame);
  }
}
