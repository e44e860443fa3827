import type { Clock } from "../../support/clock.ts";
import { hasFailed } from "./bucket-error.ts";

export interface RetryPolicy {
  readonly attempts: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
  /** No attempt begins later than this after the first. */
  readonly deadlineMs: number;
}

/** For small requests that a lease may depend on. */
export const SMALL_REQUESTS: RetryPolicy = {
  attempts: 5,
  firstDelayMs: 100,
  longestDelayMs: 2_000,
  deadlineMs: 10_000,
};

/** For blob data: a checkpoint of minutes must not fail because of a short outage. */
export const BLOB_REQUESTS: RetryPolicy = {
  attempts: 8,
  firstDelayMs: 200,
  longestDelayMs: 10_000,
  deadlineMs: 120_000,
};

/**
 * Repeats an idempotent request while its failures are unclear. The delay is random, up to a bound that doubles, so
 * that many failed clients do not come back together.
 */
export async function retryUnclear<T>(
  clock: Clock,
  policy: RetryPolicy,
  signal: AbortSignal | undefined,
  action: () => Promise<T>,
): Promise<T> {
  const startedMs = clock.monotonicMs();
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    try {
      return await action();
    } catch (error) {
      signal?.throwIfAborted();
      const late = clock.monotonicMs() - startedMs >= policy.deadlineMs;
      if (!hasFailed(error, "unclear") || attempt >= policy.attempts || late) throw error;
      await clock.sleep(delayMs(policy, attempt), signal);
    }
  }
}

export function delayMs(policy: RetryPolicy, attempt: number): number {
  return Math.random() * Math.min(policy.firstDelayMs * 2 ** (attempt - 1), policy.longestDelayMs);
}
