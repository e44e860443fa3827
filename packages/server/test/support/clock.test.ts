import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../../src/support/clock.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a sleep that is longer than a timer can be does not end at once", async () => {
  const days = 30 * 86_400_000;
  let over = false;
  void systemClock.sleep(days).then(() => (over = true));
  await vi.advanceTimersByTimeAsync(days - 1);
  expect(over).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(over).toBe(true);
});

test("an endless sleep can be aborted", async () => {
  const stop = new AbortController();
  const sleeping = systemClock.sleep(Infinity, stop.signal);
  await vi.advanceTimersByTimeAsync(60 * 86_400_000);
  stop.abort(new Error("given up"));
  await expect(sleeping).rejects.toThrow("given up");
  expect(vi.getTimerCount()).toBe(0);
});
