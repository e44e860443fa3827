/** A pooled sandbox that nobody has used. */
export interface WarmSandbox {
  /** Settles when it has ended, for any reason. */
  readonly ended: Promise<unknown>;
  destroy(): Promise<void>;
}

export interface Recipe<Sandbox> {
  /** Sandboxes of one key are interchangeable. */
  readonly key: string;
  /** This many first requests do not count: nobody may ask again. */
  readonly uncounted?: number;
  /** Creates one with low priority, until `hurry` aborts: then a caller waits for it. */
  make(options: { readonly signal: AbortSignal; readonly hurry: AbortSignal }): Promise<Sandbox>;
}

interface Making<Sandbox> {
  readonly made: Promise<Sandbox>;
  readonly hurry: AbortController;
  claimed: boolean;
}

/** How long a key is skipped after a failure to create its sandbox. */
const FAILED_MS = 60_000;

/** The sandboxes of one key, and how many were requested lately. */
export class WarmGroup<Sandbox extends WarmSandbox> {
  readonly ready: Sandbox[] = [];
  /** The newest recipe. */
  recipe: Recipe<Sandbox>;
  making: Making<Sandbox> | undefined;
  readonly #askedMs: number[] = [];
  #failedMs = -Infinity;

  constructor(recipe: Recipe<Sandbox>) {
    this.recipe = recipe;
  }

  /** How many exist or are being created. */
  get stock(): number {
    return this.ready.length + (this.making?.claimed === false ? 1 : 0);
  }

  get lastAskedMs(): number {
    return this.#askedMs.at(-1) ?? -Infinity;
  }

  asked(nowMs: number): void {
    this.#askedMs.push(nowMs);
  }

  failed(nowMs: number): void {
    this.#failedMs = nowMs;
  }

  /** Nobody has asked since; earlier requests are forgotten. */
  isForgotten(sinceMs: number): boolean {
    while (this.#askedMs.length > 0 && this.#askedMs[0]! < sinceMs) this.#askedMs.shift();
    return this.#askedMs.length === 0;
  }

  /** As many as were requested lately. */
  get wanted(): number {
    return Math.max(0, this.#askedMs.length - (this.recipe.uncounted ?? 0));
  }

  mayMake(nowMs: number): boolean {
    return this.making === undefined && nowMs - this.#failedMs >= FAILED_MS;
  }

  /** The oldest ready one, otherwise the one that is being created, if nobody waits for it. */
  take(): Promise<Sandbox | undefined> {
    const ready = this.ready.shift();
    if (ready !== undefined) return Promise.resolve(ready);
    const { making } = this;
    if (making === undefined || making.claimed) return Promise.resolve(undefined);
    making.claimed = true;
    making.hurry.abort();
    return making.made.catch(() => undefined);
  }
}
