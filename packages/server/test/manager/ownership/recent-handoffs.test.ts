import { expect, test } from "vitest";
import { RecentHandoffs } from "../../../src/manager/ownership/recent-handoffs.ts";
import { FakeClock } from "../../lease/fake-clock.ts";

test("a handed off sandbox counts as moving for a while", () => {
  const clock = new FakeClock();
  const recentHandoffs = new RecentHandoffs(clock);
  recentHandoffs.note("one");
  clock.advance(3_000);
  recentHandoffs.note("two");
  expect(["one", "two", "three"].map((id) => recentHandoffs.isOnTheWay(id))).toEqual([true, true, false]);
  clock.advance(3_000);
  expect(["one", "two"].map((id) => recentHandoffs.isOnTheWay(id))).toEqual([false, true]);
  recentHandoffs.note("two");
  clock.advance(3_000);
  expect(recentHandoffs.isOnTheWay("two")).toBe(true);
});
