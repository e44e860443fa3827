import fc from "fast-check";
import { expect, it } from "vitest";
import { keptBy } from "../../src/checkpoints/retention.ts";

function at(text: string): { ms: number } {
  return { ms: Date.parse(text) };
}

it("keeps the newest, and the newest of each hour and day that has any", () => {
  const states = [
    at("2026-11-15T10:59:00Z"),
    at("2026-11-15T10:01:00Z"),
    at("2026-11-15T10:00:00Z"),
    at("2026-11-15T09:59:59Z"),
    at("2026-11-15T03:00:00Z"),
    at("2026-11-12T23:00:00Z"),
    at("2026-11-12T01:00:00Z"),
    at("2026-11-01T12:00:00Z"),
  ] as const;
  const kept = (keep: Parameters<typeof keptBy>[0]): number[] => {
    const set = keptBy(keep, states.toReversed());
    return states.flatMap((state, index) => (set.has(state) ? [index] : []));
  };
  expect(kept({ keep_last: 2 })).toEqual([0, 1]);
  expect(kept({ hourly: 3 })).toEqual([0, 3, 4]);
  expect(kept({ daily: 2 })).toEqual([0, 5]);
  expect(kept({ keep_last: 2, hourly: 2, daily: 3 })).toEqual([0, 1, 3, 5, 7]);
});

it("keeps no less and no more than the rules require", () => {
  const count = fc.nat({ max: 4 });
  const rule = fc.record({ keep_last: count, hourly: count, daily: count });
  const times = fc.array(
    fc.nat({ max: 10 * 24 * 3_600_000 }).map((ms) => ({ ms })),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(rule, times, (keep, states) => {
      const kept = keptBy(keep, states);
      const hours = new Set(states.map(({ ms }) => Math.floor(ms / 3_600_000)));
      const days = new Set(states.map(({ ms }) => Math.floor(ms / 86_400_000)));
      expect(kept.size).toBeGreaterThanOrEqual(
        Math.max(
          Math.min(keep.keep_last, states.length),
          Math.min(keep.hourly, hours.size),
          Math.min(keep.daily, days.size),
        ),
      );
      expect(kept.size).toBeLessThanOrEqual(keep.keep_last + keep.hourly + keep.daily);
      const newest = Math.max(...states.map(({ ms }) => ms));
      if (states.length > 0 && keep.keep_last + keep.hourly + keep.daily > 0)
        expect([...kept].some(({ ms }) => ms === newest)).toBe(true);
    }),
  );
});
