import type { LossLimit } from "@sandboxer/protocol";
import type { UnsavedChanges } from "./unsaved-changes.ts";

/** Facts about the checkpoints of one sandbox. */
export interface Pace {
  /** Random from 0 to 1, new for each save: sandboxes that were created together are not saved together. */
  readonly jitter: number;
  /** How long the last save took. */
  readonly elapsedMs: number;
}

/** A save begins after this share of the time, or a little later. */
const EARLIEST_PART = 0.7;
const JITTER_PART = 0.15;
const SLACK = 1.5;
/** Minimum interval between saves, however long they take. */
const LEAST_PART = 0.1;

/** Whether it is time to save, so that max_loss is met even if the save takes twice as long as last time. */
export function isDue(limit: LossLimit, unsaved: UnsavedChanges, nowMs: number, pace: Pace): boolean {
  if ("turns" in limit) return unsaved.turns >= Math.max(1, limit.turns - Math.ceil(limit.turns / 4));
  if (unsaved.sinceMs === undefined) return false;
  const lateMs = limit.ms * (EARLIEST_PART + JITTER_PART * pace.jitter) - SLACK * pace.elapsedMs;
  return nowMs - unsaved.sinceMs >= Math.max(lateMs, limit.ms * LEAST_PART);
}

/** Whether more would be lost now than max_loss allows. */
export function isBroken(limit: LossLimit, unsaved: UnsavedChanges, nowMs: number): boolean {
  if ("turns" in limit) return unsaved.turns > limit.turns;
  return unsaved.sinceMs !== undefined && nowMs - unsaved.sinceMs > limit.ms;
}

/** Whether max_loss is met with a margin: a sandbox that barely meets it again would miss it again at once. */
export function isEasy(limit: LossLimit, unsaved: UnsavedChanges, nowMs: number): boolean {
  if ("turns" in limit) return unsaved.turns <= limit.turns / 2;
  return unsaved.sinceMs === undefined || nowMs - unsaved.sinceMs <= limit.ms / 2;
}

/** The priority when several saves are due: how much of its max_loss is used up. */
export function urgency(limit: LossLimit, unsaved: UnsavedChanges, nowMs: number): number {
  return "turns" in limit ? unsaved.turns / limit.turns : (nowMs - (unsaved.sinceMs ?? nowMs)) / limit.ms;
}

/** Delay after a failure, and after each further one: a save may block a sandbox and fill a disk. */
export function restMs(limit: LossLimit, failures: number): number {
  const longestMs = "ms" in limit ? Math.min(Math.max(limit.ms / 4, 1_000), 60_000) : 60_000;
  return Math.min(1_000 * 2 ** Math.min(failures - 1, 10), longestMs);
}
