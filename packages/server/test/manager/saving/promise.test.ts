import { describe, expect, test } from "vitest";
import { isBroken, isDue, isEasy, restMs, urgency } from "../../../src/manager/saving/promise.ts";
import { UnsavedChanges } from "../../../src/manager/saving/unsaved-changes.ts";

const FAST = { jitter: 0, elapsedMs: 0 };

/** Changes of a sandbox created at 0, with this many ended executions. */
function unsaved(turns = 0): UnsavedChanges {
  const changes = new UnsavedChanges(0);
  for (let turn = 0; turn < turns; turn++) changes.noteTurn(1);
  return changes;
}

describe("a promise of time", () => {
  const limit = { ms: 100_000 };

  test("is due in time for a save, and broken after its end", () => {
    expect([69_999, 70_000].map((nowMs) => isDue(limit, unsaved(), nowMs, FAST))).toEqual([false, true]);
    expect([100_000, 100_001].map((nowMs) => isBroken(limit, unsaved(), nowMs))).toEqual([false, true]);
  });

  test("is due later for some, and never too late", () => {
    const last = { jitter: 1, elapsedMs: 0 };
    expect([84_999, 85_000].map((nowMs) => isDue(limit, unsaved(), nowMs, last))).toEqual([false, true]);
  });

  test("is due earlier if saves take long, and not at once if they take longer than the promise", () => {
    const long = { jitter: 0, elapsedMs: 10_000 };
    expect([54_999, 55_000].map((nowMs) => isDue(limit, unsaved(), nowMs, long))).toEqual([false, true]);
    const slow = { jitter: 0, elapsedMs: 500_000 };
    expect([9_999, 10_000].map((nowMs) => isDue(limit, unsaved(), nowMs, slow))).toEqual([false, true]);
  });

  test("needs nothing while nothing can have changed", () => {
    const changes = unsaved();
    changes.published({ ...changes.mark(0), quiet: true }, 0);
    expect([isDue(limit, changes, 1e9, FAST), isBroken(limit, changes, 1e9)]).toEqual([false, false]);
    changes.noteUse(2e9);
    expect([2e9 + 69_999, 2e9 + 70_000].map((nowMs) => isDue(limit, changes, nowMs, FAST))).toEqual([false, true]);
  });
});

test.each([
  [1, 1],
  [2, 1],
  [3, 2],
  [10, 7],
])("a promise of %d executions is due after %d, and broken after one more than promised", (turns, due) => {
  expect(isDue({ turns }, unsaved(due - 1), 1e9, FAST)).toBe(false);
  expect(isDue({ turns }, unsaved(due), 0, FAST)).toBe(true);
  expect(isBroken({ turns }, unsaved(turns), 1e9)).toBe(false);
  expect(isBroken({ turns }, unsaved(turns + 1), 0)).toBe(true);
});

test("a promise is safe while at most half of it is used up", () => {
  expect([50_000, 50_001].map((nowMs) => isEasy({ ms: 100_000 }, unsaved(), nowMs))).toEqual([true, false]);
  expect([0, 1].map((turns) => isEasy({ turns: 1 }, unsaved(turns), 0))).toEqual([true, false]);
  expect([5, 6].map((turns) => isEasy({ turns: 10 }, unsaved(turns), 0))).toEqual([true, false]);
});

test("the sandbox that has used up more of its promise comes first", () => {
  expect(urgency({ ms: 1000 }, unsaved(), 900)).toBeGreaterThan(urgency({ turns: 10 }, unsaved(8), 900));
});

test("after failures the next try waits longer, but never longer than is useful", () => {
  expect([1, 2, 3, 50].map((failures) => restMs({ turns: 1 }, failures))).toEqual([1000, 2000, 4000, 60_000]);
  expect([1, 2, 9].map((failures) => restMs({ ms: 6000 }, failures))).toEqual([1000, 1500, 1500]);
  expect(restMs({ ms: 1000 }, 9)).toBe(1000);
});

describe("the unsaved part", () => {
  test("begins with the sandbox, and again with the capture if processes run inside", () => {
    const changes = new UnsavedChanges(5);
    expect(changes.sinceMs).toBe(5);
    changes.published({ ...changes.mark(50), quiet: false }, 60);
    expect(changes).toMatchObject({ sinceMs: 50, publishedMs: 60 });
  });

  test("begins when it runs, however long its creation took; later starts of the watch change nothing", () => {
    const changes = new UnsavedChanges(5);
    changes.noteStart(50);
    expect(changes.sinceMs).toBe(50);
    changes.published({ ...changes.mark(60), quiet: false }, 70);
    changes.noteStart(80);
    expect(changes.sinceMs).toBe(60);
  });

  test("is nothing after a quiet capture, unless it was used since the mark", () => {
    const changes = unsaved();
    const mark = { ...changes.mark(50), quiet: true };
    changes.published(mark, 60);
    expect(changes.sinceMs).toBeUndefined();
    const next = { ...changes.mark(70), quiet: true };
    changes.noteUse(75);
    changes.published(next, 80);
    expect(changes.sinceMs).toBe(70);
  });

  test("counts the executions that ended since the mark of the published state", () => {
    const changes = unsaved(2);
    const mark = { ...changes.mark(5), quiet: false };
    changes.noteTurn(6);
    expect(changes.turns).toBe(3);
    changes.published(mark, 7);
    expect(changes.turns).toBe(1);
  });
});
