/** A sandbox that was started ahead of the need, and that nobody has had. */
export interface WarmSandbox {
  /** Settles when it has ended, whoever ended it. */
  readonly ended: Promise<unknown>;
  destroy(): Promise<void>;
}

export interface Recipe<Sandbox> {
  /** Sandboxes of one key may stand for one another. */
  readonly key: string;
  /** So many that are asked for do not count: it may be that nobody will ask again. */
  readonly uncounted?: number;
  /** Makes one without haste, until `hurry` aborts: then somebody waits for it. */
  make(options: { readonly signal: AbortSignal; readonly hurry: AbortSignal }): Promise<Sandbox>;
}

interface Making<Sandbox> {
  readonly made: Promise<Sandbox>;
  readonly hurry: AbortController;
  claimed: boolean;
}

/** For how long a key counts as one that sandboxes cannot be made of, after one could not. */
const FAILED_MS = 60_000;

/** The sandboxes of one key, and how many of them were asked for lately. */
export class WarmGroup<Sandbox extends WarmSandbox> {
  readonly ready: Sandbox[] = [];
  /** The newest one that was asked with. */
  recipe: Recipe<Sandbox>;
  making: Making<Sandbox> | undefined;
  readonly #askedMs: number[] = [];
  #failedMs = -Infinity;

  constructor(recipe: Recipe<Sandbox>) {
    this.recipe = recipe;
  }

  /** How many are there or on their way. */
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

  /** Nobody has asked since; what came before is forgotten. */
  isForgotten(sinceMs: number): boolean {
    while (this.#askedMs.length > 0 && this.#askedMs[0]! < sinceMs) this.#askedMs.shift();
    return this.#askedMs.length === 0;
  }

  /** As many as were asked for lately. */
  get wanted(): number {
    return Math.max(0, this.#askedMs.length - (this.recipe.uncounted ?? 0));
  }

  mayMake(nowMs: number): boolean {
    return this.making === undefined && nowMs - this.#failedMs >= FAILED_MS;
  }

  /** The oldest that is ready, else the one that is being made, if nobody waits for that. */
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
