import { expect, test } from "vitest";
import { EventLog } from "../../../../src/manager/observing/events/event-log.ts";
import { FakeClock } from "../../../lease/fake-clock.ts";

const event = (type: string, number: number) => ({ type, sandboxId: null, data: { number } });

test("a flood of executions leaves the other events where they were, and is bounded itself", () => {
  const log = new EventLog(new FakeClock());
  log.append(event("sandbox.state", 1));
  for (let number = 0; number < 25_000; number += 1) log.append(event("execution.started", number));
  log.append(event("sandbox.state", 2));
  const all = log.after(undefined);
  expect(all).toHaveLength(10_002);
  expect(all[0]).toMatchObject({ type: "sandbox.state", data: { number: 1 } });
  expect(all[1]).toMatchObject({ type: "execution.started", data: { number: 15_000 } });
  expect(all.at(-1)).toMatchObject({ type: "sandbox.state", data: { number: 2 } });
});

test("a reader that continues from any cursor gets the rest in order, across both kinds", () => {
  const log = new EventLog(new FakeClock());
  for (let number = 0; number < 200; number += 1) {
    log.append(event(number % 3 === 0 ? "sandbox.state" : "execution.ended", number));
  }
  const all = log.after(undefined);
  expect(all.map(({ data }) => data["number"])).toEqual(Array.from({ length: 200 }, (_, number) => number));
  for (const [index, { cursor }] of all.entries()) expect(log.after(cursor)).toEqual(all.slice(index + 1));
  expect(log.after(log.end)).toEqual([]);
});
