import type { Advert } from "../liveness-record.ts";
import { type HeadMoves, headMoves } from "../head.ts";

/** The settings of the protocol. All times are durations on the instance's own monotonic clock. */
export interface LeaseSettings {
  readonly ttlMs: number;
  /** The URL at which other instances and clients reach this one. */
  readonly url: string | null;
  /** Published with each renewal; absent: nothing. */
  readonly advert?: Advert | undefined;
  /** Interval between renewals of the own record, and between looks at those of the others. */
  readonly renewMs: number;
  /** Without a confirmed renewal for this long, nothing may run. */
  readonly freezeMs: number;
  /** Interval between attempts at the own record. Some stores allow one write per second to one name. */
  readonly renewRetryMs: number;
  /**
   * Interval between looks at the head of a sandbox that this instance holds. A server that requests a sandbox rings the
   * bell until it has an answer, so this only compensates for bells that cannot be written; on some stores each look
   * costs money.
   */
  readonly sweepMs: number;
  /** The looks are spread over this interval, and at most so many begin in each: beyond that a round takes longer. */
  readonly sweepTickMs: number;
  readonly sweepMost: number;
  /** Interval between looks of a claim that waits for a sandbox. */
  readonly waitPollMs: number;
  /** The first pause after a head could not be read or swapped; each further one is twice as long. */
  readonly firstRetryMs: number;
  readonly longestRetryMs: number;
  readonly moves: HeadMoves;
}

/** After this many ttls without a change an instance is dead, by the watcher's own clock. */
export const DEAD_AFTER_TTLS = 1.5;

/**
 * The freeze comes after half the time that makes others declare a death, so that clocks may run at rates of 2:1: an
 * owner has stopped before another instance can claim its sandboxes.
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
    sweepTickMs: ttlMs / 3,
    sweepMost: 8,
    waitPollMs: ttlMs / 60,
    firstRetryMs: 50,
    longestRetryMs: 2_000,
    moves: headMoves,
    ...overrides,
  };
}
