import { expect, it } from "vitest";
import { runFleet } from "./fleet/run-fleet.ts";

const SMALL = { servers: 12, sandboxes: 240, hours: 1 };

it("a fleet loses no sandbox and runs none twice, whatever happens to its servers and its store", () => {
  const { violation, tally, requestsPerSecond } = runFleet({ seed: 1, ...SMALL });
  expect(violation).toBeUndefined();
  expect(tally.takeovers).toBeGreaterThan(50);
  expect(tally.handoffs).toBeGreaterThan(20);
  expect(tally.freezes).toBeGreaterThan(10);
  expect(tally.acknowledged).toBeGreaterThan(500);
  expect(requestsPerSecond["read-record"]).toBeLessThan(0.5 * SMALL.servers);
});

const FOUND = ["epoch-not-bumped", "no-freeze", "ambiguous-as-success", "no-tombstone"] as const;

it.each(FOUND)("the fleet finds the planted bug %s", (bug) => {
  expect(runFleet({ seed: 1, ...SMALL, bug }).violation).toBeDefined();
});
