interface Entry {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** The planned events in virtual time: a binary heap, with ties in the order of planning. */
export class Timeline {
  readonly #heap: Entry[] = [];
  #order = 0;
  nowMs = 0;
  /** How many things have happened. */
  events = 0;

  after(delayMs: number, run: () => void): void {
    const heap = this.#heap;
    const entry: Entry = { atMs: this.nowMs + Math.max(0, delayMs), order: this.#order++, run };
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(entry, heap[parent] as Entry)) break;
      heap[index] = heap[parent] as Entry;
      index = parent;
    }
    heap[index] = entry;
  }

  /** Lets everything happen up to a moment, or until there have been so many events. */
  runUntil(endMs: number, maxEvents: number): void {
    while (this.events < maxEvents) {
      const first = this.#heap[0];
      if (first === undefined || first.atMs > endMs) break;
      this.#removeFirst();
      this.nowMs = first.atMs;
      this.events++;
      first.run();
    }
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child++;
      if (!isBefore(heap[child] as Entry, last)) break;
      heap[index] = heap[child] as Entry;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(left: Entry, right: Entry): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order);
}
