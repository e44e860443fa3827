/** The mistakes that the simulation must find. Each is planted where the core meets its surroundings. */
export const BUGS = {
  "plain-put": "an owner publishes without the condition on the version",
  "check-then-put": "the version is checked first, and the write comes a moment later",
  "ambiguous-as-success": "a publish whose answer was lost is taken as done",
  "epoch-not-bumped": "a claim leaves the epoch as it is",
  "collection-regardless-of-epoch": "an owner removes everything that its own head does not reach",
  "wall-clock-expiry": "lengths of time are taken from the clock that people set",
  "no-tombstone": "a dead owner's record is not swapped to dead before its sandboxes are taken",
  "no-head-tombstone": "the head of a destroyed sandbox is removed",
  "lost-is-removed": "an owner that was overtaken removes the only copy, which its provider keeps",
  "removed-before-tombstone": "an owner removes the only copy at its provider before the head says destroyed",
  "late-save": "a save whose sandbox was lost and taken again meanwhile is published at the new epoch",
  "winner-ends-first": "the fork that is promoted is deleted before the original has its state",
  "promotion-in-two-swaps": "the state of a fork is published first, and the promotion is recorded later",
  "no-freeze": "an owner without a confirmed renewal goes on",
} as const;

export type Bug = keyof typeof BUGS;

export function isBug(name: string): name is Bug {
  return Object.hasOwn(BUGS, name);
}
