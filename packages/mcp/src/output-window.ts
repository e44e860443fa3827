import { completeLength, firstCharacter } from "./utf8.ts";

/** The output that was left out of the middle, as offsets. */
export interface Gap {
  readonly from: number;
  readonly to: number;
}

/**
 * The output of a process within a budget. With `keepEnd`, output beyond the budget takes the place of the middle, so
 * that the beginning and the end remain; otherwise the window is full, and the rest is for the next read.
 */
export class OutputWindow {
  readonly #keepEnd: boolean;
  readonly #headBytes: number;
  readonly #tailBytes: number;
  #head: Buffer = Buffer.alloc(0);
  #tail: Buffer = Buffer.alloc(0);
  #start: number;
  #position: number;

  constructor(offset: number, budgetBytes: number, { keepEnd }: { readonly keepEnd: boolean }) {
    this.#keepEnd = keepEnd;
    this.#tailBytes = keepEnd ? Math.floor(budgetBytes / 2) : 0;
    this.#headBytes = budgetBytes - this.#tailBytes;
    this.#start = offset;
    this.#position = offset;
  }

  /** Where the output that was read begins: later than requested if older output was dropped. */
  get start(): number {
    return this.#start;
  }

  /** Where the next read continues. */
  get position(): number {
    return this.#position;
  }

  get isFull(): boolean {
    return !this.#keepEnd && this.#head.length >= this.#headBytes;
  }

  get isEmpty(): boolean {
    return this.#head.length === 0;
  }

  /** The output begins at `offset`: everything before was dropped. */
  skipTo(offset: number): void {
    if (offset <= this.#position || !this.isEmpty) return;
    this.#start = offset;
    this.#position = offset;
  }

  /** Adds output that ends at `end`. A part that is already here is ignored. */
  add(data: Buffer, end: number): void {
    const fresh = data.subarray(Math.max(0, this.#position - (end - data.length)));
    if (fresh.length === 0 || this.isFull) return;
    const room = this.#headBytes - this.#head.length;
    const isWhole = fresh.length <= room || this.#keepEnd;
    this.#head = Buffer.concat([this.#head, fresh.subarray(0, room)]);
    this.#position = isWhole ? end : end - fresh.length + room;
    if (!this.#keepEnd || fresh.length <= room) return;
    const tail = Buffer.concat([this.#tail, fresh.subarray(Math.max(0, room))]);
    this.#tail = Buffer.from(tail.subarray(-this.#tailBytes));
  }

  /** The text, without half characters at its cuts. `isOver`: nothing will follow, so that nothing is held back. */
  take(isOver: boolean): { readonly text: string; readonly nextOffset: number; readonly gap: Gap | undefined } {
    const tailStart = this.#position - this.#tail.length;
    const headEnd = this.#start + this.#head.length;
    if (this.#tail.length > 0 && tailStart > headEnd) {
      const head = this.#head.subarray(0, completeLength(this.#head));
      const tail = this.#tail.subarray(firstCharacter(this.#tail));
      const gap = { from: this.#start + head.length, to: this.#position - tail.length };
      const note = `\n[… ${gap.to - gap.from} bytes left out, from offset ${gap.from} …]\n`;
      return { text: head.toString() + note + tail.toString(), nextOffset: this.#position, gap };
    }
    const all = Buffer.concat([this.#head, this.#tail]);
    const complete = completeLength(all);
    // A program that ends with half a character, or writes no text, must not be read forever.
    const end = (isOver && !this.isFull) || complete === 0 ? all.length : complete;
    return { text: all.toString("utf8", 0, end), nextOffset: this.#start + end, gap: undefined };
  }
}
