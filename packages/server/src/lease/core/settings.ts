import { type HeadMoves, headMoves } from "../head.ts";

/** What the protocol is run with. All times are lengths on the instance's own monotonic clock. */
export interface LeaseSettings {
  readonly ttlMs: number;
  /** Where other instances and clients reach this one. */
  readonly url: string | null;
  /** Between two renewals of the own record, and between two looks at those of the others. */
  readonly renewMs: number;
  /** Without a confirmed renewal for so long, nothing may run any more. */
  readonly freezeMs: number;
  /** Between two attempts at the own record. Some stores take one write per second to one name. */
  readonly renewRetryMs: number;
  /**
   * Between two looks at all heads that this instance holds. Somebody who asks for a sandbox rings the bell, so that this
   * only makes up for bells that stay silent; on some stores each look costs money.
   */
  readonly sweepMs: number;
  /** Between two looks of somebody who waits for a sandbox. */
  readonly waitPollMs: number;
  /** The first pause after a head could not be read or swapped; each further one is twice as long. */
  readonly firstRetryMs: number;
  readonly longestRetryMs: number;
  readonly moves: HeadMoves;
}

/** After this many of its ttl without a change an instance is dead, by the watcher's own clock. */
export const DEAD_AFTER_TTLS = 1.5;

/**
 * The freeze comes after half the time that makes others believe in a death, so that clocks may run at rates of 2:1: an
 * owner has stopped before anybody can take what it owned.
 */
const FREEZE_AFTER_TTLS = DEAD_AFTER_TTLS / 2;

export function leaseSettings(
  ttlMs: number,
  url: string | null,
  overrides: Partial<LeaseSettings> = {},
): LeaseSettings {
  return {
    ttlMs,
    url,
    renewMs: ttlMs / 3,
    freezeMs: ttlMs * FREEZE_AFTER_TTLS,
    renewRetryMs: ttlMs / 15,
    sweepMs: ttlMs * 4,
    waitPollMs: ttlMs / 60,
    firstRetryMs: 50,
    longestRetryMs: 2_000,
    moves: headMoves,
    ...overrides,
  };
}
