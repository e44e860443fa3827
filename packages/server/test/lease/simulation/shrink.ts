import type { Bug } from "./bugs.ts";
import { FaultPlan, type PlannedFault } from "./fault-plan.ts";
import { runSchedule, type ScheduleResult } from "./schedule.ts";

export interface Shrunk {
  readonly result: ScheduleResult;
  readonly runs: number;
  /** The faults without which the promise holds. */
  readonly faults: readonly PlannedFault[];
}

/**
 * Finds few faults that break a promise under a seed: first the shortest beginning of them, then without those that can be
 * left out, in ever smaller pieces. What remains is replayed by the seed and the ordinals.
 */
export function shrink(failure: ScheduleResult, bug?: Bug, maxRuns = 400): Shrunk {
  let best = failure;
  let runs = 0;
  const attempt = (ordinals: ReadonlySet<number>): boolean => {
    if (runs >= maxRuns) return false;
    runs++;
    const result = runSchedule(failure.seed, bug, new FaultPlan((ordinal) => ordinals.has(ordinal)));
    if (result.violation === undefined) return false;
    best = result;
    return true;
  };
  shorten(() => ordinalsOf(best), attempt);
  for (let size = Math.ceil(best.faults.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let start = 0; start < best.faults.length;) {
      const ordinals = ordinalsOf(best);
      const without = new Set([...ordinals.slice(0, start), ...ordinals.slice(start + size)]);
      if (!attempt(without)) start += size;
    }
  }
  return { result: best, runs, faults: best.faults };
}

/** The same seed, with only these faults. */
export function replay(seed: number, bug: Bug | undefined, ordinals: Iterable<number>): ScheduleResult {
  const allowed = new Set(ordinals);
  return runSchedule(seed, bug, new FaultPlan((ordinal) => allowed.has(ordinal)));
}

function shorten(ordinals: () => readonly number[], attempt: (ordinals: ReadonlySet<number>) => boolean): void {
  let least = 0;
  for (let most = ordinals().length; least < most;) {
    const middle = (least + most) >> 1;
    if (attempt(new Set(ordinals().slice(0, middle)))) most = middle;
    else least = middle + 1;
  }
}

function ordinalsOf({ faults }: ScheduleResult): readonly number[] {
  return faults.map(({ ordinal }) => ordinal);
}
