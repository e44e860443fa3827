/** Runs work side by side as far as the machine has room. */
export class Room {
  readonly #width: number;
  #used = 0;
  #waiting: { readonly rank: number; readonly weight: number; readonly enter: () => void }[] = [];

  constructor(width: number) {
    this.#width = width;
  }

  /** The waiting work with the lowest rank goes first; work that does not fit yet lets smaller work pass. */
  async use<Result>(rank: number, weight: number, work: () => Promise<Result>): Promise<Result> {
    await new Promise<void>((enter) => {
      this.#waiting.push({ rank, weight, enter });
      this.#waiting.sort((one, other) => one.rank - other.rank);
      // Callers of the same moment are all queued before one of them is chosen.
      queueMicrotask(() => this.#admit());
    });
    try {
      return await work();
    } finally {
      this.#used -= weight;
      this.#admit();
    }
  }

  #admit(): void {
    this.#waiting = this.#waiting.filter(({ weight, enter }) => {
      // Work that is wider than the room has it alone.
      if (this.#used > 0 && this.#used + weight > this.#width) return true;
      this.#used += weight;
      enter();
      return false;
    });
  }
}
