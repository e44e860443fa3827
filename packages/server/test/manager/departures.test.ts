import { expect, test } from "vitest";
import { Departures } from "../../src/manager/ownership/departures.ts";
import { FakeClock } from "../lease/fake-clock.ts";

test("a sandbox that was given away is on its way for a while", () => {
  const clock = new FakeClock();
  const departures = new Departures(clock);
  departures.note("one");
  clock.advance(3_000);
  departures.note("two");
  expect(["one", "two", "three"].map((id) => departures.isOnTheWay(id))).toEqual([true, true, false]);
  clock.advance(3_000);
  expect(["one", "two"].map((id) => departures.isOnTheWay(id))).toEqual([false, true]);
  departures.note("two");
  clock.advance(3_000);
  expect(departures.isOnTheWay("two")).toBe(true);
});
