/** Gives a place back; whoever calls it again gives nothing back. */
export type GiveBack = () => void;

/** A number of places to work at. Who finds too few free waits, behind those who came before. */
export class Places {
  #free: number;
  readonly #waiting: { readonly count: number; readonly enter: () => void }[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async take(count = 1): Promise<GiveBack> {
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    this.#waiting.push({ count, enter });
    this.#letIn();
    await entered;
    let taken = count;
    return () => {
      this.#free += taken;
      taken = 0;
      this.#letIn();
    };
  }

  async run<Result>(work: () => Promise<Result>, count = 1): Promise<Result> {
    const giveBack = await this.take(count);
    try {
      return await work();
    } finally {
      giveBack();
    }
  }

  #letIn(): void {
    for (let first = this.#waiting[0]; first !== undefined && first.count <= this.#free; first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#free -= first.count;
      first.enter();
    }
  }
}
