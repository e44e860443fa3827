import type { LossLimit } from "@sandboxer/protocol";
import type { UnsavedChanges } from "./unsaved-changes.ts";

/** What is known of the saves of one sandbox. */
export interface Pace {
  /** From 0 to 1, fresh for each save: those that were made together are not saved together. */
  readonly jitter: number;
  /** How long the last one took. */
  readonly elapsedMs: number;
}

/** A save begins after this part of the time, or a little later. */
const EARLIEST_PART = 0.7;
const JITTER_PART = 0.15;
const SLACK = 1.5;
/** However long saves take, they do not follow one another closer than this. */
const LEAST_PART = 0.1;

/** Whether it is time to save, so that the promise is kept also when that takes twice as long as last time. */
export function isDue(limit: LossLimit, unsaved: UnsavedChanges, nowMs: number, pace: Pace): boolean {
  if ("turns" in limit) return unsaved.turns >= Math.max(1, limit.turns - Math.ceil(limit.turns / 4));
  if (unsaved.sinceMs === undefined) return false;
  const lateMs = limit.ms * (EARLIEST_PART + JITTER_PART * pace.jitter) - SLACK * pace.elapsedMs;
  return nowMs - unsaved.sinceMs >= Math.max(lateMs, limit.ms * LEAST_PART);
}

/** Whether more would be lost now than was promised. */
export function isBroken(limit: LossLimit, unsaved: UnsavedChanges, nowMs: number): boolean {
  if ("turns" in limit) return unsaved.turns > limit.turns;
  return unsaved.sinceMs !== undefined && nowMs - unsaved.sinceMs > limit.ms;
}

/** Whether it is kept with ease: one that was broken and is kept by a hair would be broken again at once. */
export function isEasy(limit: LossLimit, unsaved: UnsavedChanges, nowMs: number): boolean {
  if ("turns" in limit) return unsaved.turns <= limit.turns / 2;
  return unsaved.sinceMs === undefined || nowMs - unsaved.sinceMs <= limit.ms / 2;
}

/** What comes first when several are due: how much of its promise is used up. */
export function urgency(limit: LossLimit, unsaved: UnsavedChanges, nowMs: number): number {
  return "turns" in limit ? unsaved.turns / limit.turns : (nowMs - (unsaved.sinceMs ?? nowMs)) / limit.ms;
}

/** After a failure, and after each one more: a save may hold a sandbox up and fill a disk. */
export function restMs(limit: LossLimit, failures: number): number {
  const longestMs = "ms" in limit ? Math.min(Math.max(limit.ms / 4, 1_000), 60_000) : 60_000;
  return Math.min(1_000 * 2 ** Math.min(failures - 1, 10), longestMs);
}
