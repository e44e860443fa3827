import fc from "fast-check";
import { expect, test } from "vitest";
import { cpusBetween, UsageSeries, type UsagePoint } from "../../../../src/manager/observing/usage/usage-series.ts";

function point(seconds: number, cpuMs = seconds * 500): UsagePoint {
  const ms = seconds * 1000;
  return { memoryBytes: seconds, diskBytes: 0, cpuMs, wallMs: 1_790_000_000_000 + ms, monotonicMs: ms };
}

test("five minutes are kept completely, then one point per 15 s, for half an hour", () => {
  const series = new UsageSeries();
  for (let seconds = 0; seconds <= 7200; seconds += 2) series.add(point(seconds));
  const times = series.points.map(({ memoryBytes }) => memoryBytes);
  expect(times.filter((seconds) => seconds >= 6900)).toHaveLength(151);
  const older = times.filter((seconds) => seconds < 6900);
  expect(older[0]).toBeGreaterThanOrEqual(7200 - 1800);
  expect(older.length).toBeGreaterThan(80);
  expect(older.length).toBeLessThanOrEqual(101);
});

test("with any number of points, few are kept, in order, with the newest last", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 900 }), { maxLength: 400 }), (gaps) => {
      const series = new UsageSeries();
      let seconds = 0;
      for (const gap of gaps) series.add(point((seconds += gap)));
      const times = series.points.map(({ memoryBytes }) => memoryBytes);
      expect(times).toEqual(times.toSorted((left, right) => left - right));
      expect(times.length).toBeLessThanOrEqual(422);
      expect(series.last(5)).toEqual(series.points.slice(-5));
      expect(series.last(1000)).toEqual(series.points);
      if (gaps.length > 0) expect(times.at(-1)).toBe(seconds);
    }),
  );
});

test("a rate is right between any two points, and unknown when the count began again", () => {
  expect(cpusBetween(point(2), point(40))).toBe(0.5);
  expect(cpusBetween(undefined, point(2))).toBeUndefined();
  expect(cpusBetween(point(2, 9000), point(4, 100))).toBeUndefined();
  expect(cpusBetween(point(4), point(4))).toBeUndefined();
});
