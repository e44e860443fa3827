import type { Clock } from "../../support/clock.ts";

export interface RateLimiterOptions {
  readonly perSecond: number;
  /** The size of a burst after a pause. */
  readonly burst: number;
  /** How many callers are tracked separately. */
  readonly maxCallers?: number;
  /** How many servers share the limit; this one allows its part. Default: 1. */
  readonly servers?: () => number;
  readonly clock: Pick<Clock, "monotonicMs">;
}

const MAX_CALLERS = 10_000;
/** Tolerance for rounding errors of sums. */
const ROUNDING_MS = 0.01;
/** Not the name of any caller. */
const ALL_OTHERS = "";

/**
 * A token bucket for each caller, stored as one number: the time at which the bucket is full again. A full bucket is
 * not stored. When more than `maxCallers` callers have used theirs, newcomers share one bucket: memory is bounded, and
 * nobody gets a fresh bucket by coming from many addresses.
 */
export class RateLimiter {
  readonly #intervalMs: number;
  readonly #burst: number;
  readonly #servers: () => number;
  readonly #maxCallers: number;
  readonly #clock: RateLimiterOptions["clock"];
  /** In the order of last use. */
  readonly #fullAtMs = new Map<string, number>();

  constructor({ perSecond, burst, maxCallers = MAX_CALLERS, servers = () => 1, clock }: RateLimiterOptions) {
    this.#intervalMs = 1000 / perSecond;
    this.#burst = burst;
    this.#servers = servers;
    this.#maxCallers = maxCallers;
    this.#clock = clock;
  }

  /** How many callers are in memory. */
  get size(): number {
    return this.#fullAtMs.size;
  }

  /** Takes a token. Returns 0, or for how many milliseconds there is none; then nothing is taken. */
  take(caller: string): number {
    const waitMs = this.waitMs(caller);
    if (waitMs > 0) return waitMs;
    const nowMs = this.#clock.monotonicMs();
    const bucket = this.#bucketOf(caller, nowMs);
    const fullAtMs = Math.max(this.#fullAtMs.get(bucket) ?? nowMs, nowMs) + this.#intervalMs * this.#servers();
    this.#fullAtMs.delete(bucket);
    this.#fullAtMs.set(bucket, fullAtMs);
    return 0;
  }

  /** For how many milliseconds there is no token; 0: there is one. Takes none. */
  waitMs(caller: string): number {
    const nowMs = this.#clock.monotonicMs();
    const fullAtMs = this.#fullAtMs.get(this.#bucketOf(caller, nowMs)) ?? nowMs;
    const waitMs = fullAtMs - nowMs - this.#windowMs();
    return waitMs < ROUNDING_MS ? 0 : waitMs;
  }

  /** Until a bucket is full again that has one token left. */
  #windowMs(): number {
    const servers = this.#servers();
    return (Math.max(1, this.#burst / servers) - 1) * this.#intervalMs * servers;
  }

  #bucketOf(caller: string, nowMs: number): string {
    if (this.#fullAtMs.has(caller) || this.#fullAtMs.size < this.#maxCallers) return caller;
    // The least recently used come first; after one that is not full yet, none has been full for long.
    for (const [each, fullAtMs] of this.#fullAtMs) {
      if (fullAtMs > nowMs) break;
      this.#fullAtMs.delete(each);
    }
    return this.#fullAtMs.size < this.#maxCallers ? caller : ALL_OTHERS;
  }
}
