/**
 * Every collection may hold this much even if the budget is full, so that small responses never wait for large ones.
 */
const FREE_BYTES = 128 * 1024;

interface Waiting {
  readonly share: OutputShare;
  readonly bytes: number;
  readonly settle: (granted: boolean) => void;
}

/**
 * The memory of one server for output that is collected or sent as one response. A collection that finds the budget
 * used up waits, and its program with it. They are served in order, and the first that waits may exceed the budget
 * until its response is sent: collections that each hold a part never deadlock.
 */
export class OutputBudget {
  readonly limitBytes: number;
  #heldBytes = 0;
  /** Oldest first. */
  readonly #waiting = new Set<Waiting>();
  /** May exceed the budget. */
  #exempt: OutputShare | undefined;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** How many collections wait for memory. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** The share of one response. Release it when the response was sent, or will not be. */
  open(): OutputShare {
    const share: OutputShare = new OutputShare({
      take: (bytes, signal) => this.#take(share, bytes, signal),
      give: (bytes) => {
        this.#heldBytes -= bytes;
        this.#serve();
      },
      close: () => {
        if (this.#exempt === share) this.#exempt = undefined;
        this.#serve();
      },
    });
    return share;
  }

  async #take(share: OutputShare, bytes: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (share.heldBytes + bytes <= FREE_BYTES || share === this.#exempt) {
      this.#heldBytes += bytes;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiting: Waiting = { share, bytes, settle: resolve };
    const giveUp = (): void => {
      this.#waiting.delete(waiting);
      resolve(false);
      this.#serve();
    };
    this.#waiting.add(waiting);
    signal.addEventListener("abort", giveUp, { once: true });
    this.#serve();
    return promise.finally(() => signal.removeEventListener("abort", giveUp));
  }

  #serve(): void {
    for (const waiting of this.#waiting) {
      if (this.#heldBytes + waiting.bytes > this.limitBytes) {
        if (this.#exempt !== undefined) return;
        this.#exempt = waiting.share;
      }
      this.#waiting.delete(waiting);
      this.#heldBytes += waiting.bytes;
      waiting.settle(true);
    }
  }
}

interface ShareHooks {
  readonly take: (bytes: number, signal: AbortSignal) => Promise<boolean>;
  readonly give: (bytes: number) => void;
  readonly close: () => void;
}

/** The memory that one response holds. */
export class OutputShare {
  readonly #hooks: ShareHooks;
  #heldBytes = 0;

  constructor(hooks: ShareHooks) {
    this.#hooks = hooks;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Waits for its turn. False: the signal came first, and nothing was granted. */
  async take(bytes: number, signal: AbortSignal): Promise<boolean> {
    const granted = await this.#hooks.take(bytes, signal);
    if (granted) this.#heldBytes += bytes;
    return granted;
  }

  give(bytes: number): void {
    this.#heldBytes -= bytes;
    this.#hooks.give(bytes);
  }

  /** Releases everything that it holds. Idempotent. */
  release(): void {
    this.give(this.#heldBytes);
    this.#hooks.close();
  }
}
