/** Runs one piece of work after the other, in the order in which they came. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(work, work);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/** Work under the same key runs one after the other; under different keys, concurrently. */
export class KeyedQueue {
  readonly #queues = new Map<string, { readonly queue: SerialQueue; waiting: number }>();

  /** Whether work runs or waits under the key. */
  isBusy(key: string): boolean {
    return this.#queues.has(key);
  }

  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const entry = this.#queues.get(key) ?? { queue: new SerialQueue(), waiting: 0 };
    this.#queues.set(key, entry);
    entry.waiting += 1;
    try {
      return await entry.queue.run(work);
    } finally {
      entry.waiting -= 1;
      if (entry.waiting === 0) this.#queues.delete(key);
    }
  }
}
