import type { Keep } from "@sandboxer/protocol";

const HOUR_MS = 3_600_000;

/** Whether a snapshot exists only because a fork needed it: nobody has named, labelled or pinned it. */
export function isOnlyForFork(snapshot: {
  readonly reason: string;
  readonly state: string;
  readonly name: string | null;
  readonly pinned?: boolean | undefined;
  readonly labels: Readonly<Record<string, string>>;
}): boolean {
  const { reason, state, name, pinned, labels } = snapshot;
  return reason === "fork" && state === "ready" && name === null && pinned !== true && Object.keys(labels).length === 0;
}

/** A saved state, and when it was captured. */
export interface Dated {
  readonly ms: number;
}

/**
 * The states that a rule keeps: the newest ones, and the newest of each of the last hours and days that have any. Hours
 * and days without one do not count, so that an unused sandbox keeps its states.
 */
export function keptBy<T extends Dated>(keep: Keep, states: readonly T[]): ReadonlySet<T> {
  const newestFirst = states.toSorted((a, b) => b.ms - a.ms);
  return new Set([
    ...newestFirst.slice(0, keep.keep_last ?? 0),
    ...newestOfEach(newestFirst, HOUR_MS, keep.hourly ?? 0),
    ...newestOfEach(newestFirst, 24 * HOUR_MS, keep.daily ?? 0),
  ]);
}

function newestOfEach<T extends Dated>(newestFirst: readonly T[], spanMs: number, spans: number): readonly T[] {
  const newest = new Map<number, T>();
  for (const state of newestFirst) {
    const span = Math.floor(state.ms / spanMs);
    if (!newest.has(span)) newest.set(span, state);
  }
  return [...newest.values()].slice(0, spans);
}
