/** Releases a place; calling it again does nothing. */
export type GiveBack = () => void;

/** A number of places to work at. Callers wait in order if none is free. */
export class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Whether a caller waits for a place. */
  get crowded(): boolean {
    return this.#waiting.length > 0;
  }

  add(count: number): void {
    this.#free += count;
    while (this.#free > 0 && this.crowded) {
      this.#free -= 1;
      this.#waiting.shift()?.();
    }
  }

  async take(): Promise<GiveBack> {
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    this.#waiting.push(enter);
    this.add(0);
    await entered;
    let taken = 1;
    return () => {
      this.add(taken);
      taken = 0;
    };
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    const giveBack = await this.take();
    try {
      return await work();
    } finally {
      giveBack();
    }
  }
}
