import { describe, expect, test } from "vitest";
import { RateLimiter } from "../../../src/gateway/access/rate-limiter.ts";
import { remoteNetwork } from "../../../src/gateway/access/access-gate.ts";
import { FakeClock } from "../../lease/fake-clock.ts";

function limiter(options: { perSecond?: number; burst?: number; maxCallers?: number; servers?: () => number } = {}) {
  const clock = new FakeClock();
  return { clock, limiter: new RateLimiter({ perSecond: 10, burst: 5, clock, ...options }) };
}

const times = (count: number, take: () => number): number[] => Array.from({ length: count }, take);

test("a burst is allowed, then one call per interval; a refused caller loses nothing", () => {
  const { clock, limiter: rate } = limiter();
  expect(times(6, () => rate.take("a"))).toEqual([0, 0, 0, 0, 0, 100]);
  expect(rate.take("a")).toBe(100);
  clock.advance(100);
  expect([rate.take("a"), rate.take("a")]).toEqual([0, 100]);
  clock.advance(250);
  expect([rate.take("a"), rate.take("a"), rate.take("a")]).toEqual([0, 0, 50]);
});

test("servers that share a limit allow their parts of it, as their number changes", () => {
  let servers = 2;
  const { clock, limiter: rate } = limiter({ perSecond: 10, burst: 4, servers: () => servers });
  expect(times(3, () => rate.take("a"))).toEqual([0, 0, 200]);
  clock.advance(200);
  expect([rate.take("a"), rate.take("a")]).toEqual([0, 200]);
  servers = 1;
  expect(times(3, () => rate.take("b"))).toEqual([0, 0, 0]);
  servers = 100;
  expect([rate.take("c"), rate.take("c")]).toEqual([0, 10_000]);
});

test.each([3, 7, 30, 60, 999, 1 / 6])("at %d in a second the burst is complete, at any time", (perSecond) => {
  const { clock, limiter: rate } = limiter({ perSecond, burst: 50 });
  for (const pauseMs of [0, 1e9 / 3, 1e9 / 7]) {
    clock.advance(pauseMs);
    expect(times(50, () => rate.take(`after ${pauseMs}`))).toEqual(times(50, () => 0));
    expect(rate.take(`after ${pauseMs}`)).toBeCloseTo(1000 / perSecond, 3);
  }
});

test("a long pause allows the burst and no more", () => {
  const { clock, limiter: rate } = limiter();
  times(5, () => rate.take("a"));
  clock.advance(3_600_000);
  expect(times(6, () => rate.take("a"))).toEqual([0, 0, 0, 0, 0, 100]);
});

test("callers do not affect each other, and reading takes no token", () => {
  const { limiter: rate } = limiter({ burst: 1 });
  expect([rate.waitMs("a"), rate.take("a"), rate.waitMs("a"), rate.take("b")]).toEqual([0, 0, 100, 0]);
});

describe("more callers than it can tell apart", () => {
  test("share one bucket, and those that are known keep theirs", () => {
    const { limiter: rate } = limiter({ burst: 2, maxCallers: 3 });
    for (const caller of ["a", "a", "b", "c"]) rate.take(caller);
    expect(["d", "e", "f"].map((caller) => rate.take(caller))).toEqual([0, 0, 100]);
    expect(["a", "b", "c"].map((caller) => rate.take(caller))).toEqual([100, 0, 0]);
  });

  test("have buckets of their own again when others are full", () => {
    const { clock, limiter: rate } = limiter({ burst: 1, maxCallers: 3 });
    for (const caller of ["a", "b", "c", "d"]) rate.take(caller);
    clock.advance(1_000);
    expect(["x", "y", "z"].map((caller) => rate.take(caller))).toEqual([0, 0, 0]);
  });

  test("never take more memory", () => {
    const { clock, limiter: rate } = limiter({ maxCallers: 100 });
    for (let number = 0; number < 10_000; number++) {
      rate.take(`caller ${number}`);
      if (number % 7 === 0) clock.advance(1);
      expect(rate.size).toBeLessThanOrEqual(101);
    }
  });
});

test.each([
  ["203.0.113.9", "203.0.113.9"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::1", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["2001:0DB8::", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  [undefined, "unknown"],
])("%s counts as %s", (address, network) => {
  expect(remoteNetwork(address)).toBe(network);
});
