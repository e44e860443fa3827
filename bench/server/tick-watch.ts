/** Python that prints a number every 20 ms. */
export const TICK = [
  "import itertools, time",
  "for number in itertools.count():",
  "  print(number, flush=True)",
  "  time.sleep(0.02)",
].join("\n");

/** When output arrived, on any socket. */
export class TickWatch {
  #lastMs: number | undefined;
  #count = 0;
  #longestGapMs = 0;
  #wake = Promise.withResolvers<void>();

  readonly tick = (): void => {
    const nowMs = performance.now();
    if (this.#lastMs !== undefined) this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
    this.#count += 1;
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  };

  get longestGapMs(): number {
    return this.#longestGapMs;
  }

  /** Waits for this many more. */
  async ticks(more: number): Promise<void> {
    const wanted = this.#count + more;
    while (this.#count < wanted) await this.#wake.promise;
  }
}
