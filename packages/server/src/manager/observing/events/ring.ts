/** The newest entries, up to a limit. */
export class Ring<Entry> {
  readonly #limit: number;
  readonly #entries: Entry[] = [];
  /** Where the oldest one is, once it is full. */
  #oldest = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(entry: Entry): void {
    if (this.#entries.length < this.#limit) {
      this.#entries.push(entry);
      return;
    }
    this.#entries[this.#oldest] = entry;
    this.#oldest = (this.#oldest + 1) % this.#limit;
  }

  /** Oldest first. */
  all(): Entry[] {
    return [...this.#entries.slice(this.#oldest), ...this.#entries.slice(0, this.#oldest)];
  }
}
