import type { Bug } from "./bugs.ts";
import type { Tally } from "./ledger.ts";
import { addTally } from "./report.ts";
import { runSchedule } from "./schedule.ts";

export interface Batch {
  readonly firstSeed: number;
  readonly schedules: number;
  /** The step between seeds, if several workers share them. */
  readonly stride: number;
  readonly bug: Bug | undefined;
}

export interface BatchResult {
  readonly schedules: number;
  readonly events: number;
  readonly fewestEvents: number;
  readonly tally: Tally | undefined;
  /** The first seed that broke a promise; nothing was run after it. */
  readonly failedSeed: number | undefined;
}

export function runBatch({ firstSeed, schedules, stride, bug }: Batch): BatchResult {
  let events = 0;
  let fewestEvents = Number.POSITIVE_INFINITY;
  let tally: Tally | undefined;
  for (let count = 0; count < schedules; count++) {
    const seed = firstSeed + count * stride;
    const result = runSchedule(seed, bug);
    events += result.events;
    if (tally === undefined) tally = result.tally;
    else addTally(tally, result.tally);
    if (result.violation !== undefined) {
      return { schedules: count + 1, events, fewestEvents, tally, failedSeed: seed };
    }
    fewestEvents = Math.min(fewestEvents, result.events);
  }
  return { schedules, events, fewestEvents, tally, failedSeed: undefined };
}
