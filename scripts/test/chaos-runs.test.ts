import { expect, test } from "vitest";
import { Random } from "../../packages/server/test/lease/simulation/random.ts";
import { FAULT_NAMES } from "../../packages/server/test/system/chaos/faults/fault-names.ts";
import { planEpisodes } from "../../packages/server/test/system/chaos/faults/plan.ts";
import { LONG_RUNS, USUAL_RUNS } from "../testing/chaos-runs.ts";

/** As many as a run of a minute reaches on a busy machine. */
const EPISODES = 4;

test("the chaos of npm test has every backend, every store and every fault", () => {
  const names = USUAL_RUNS.flatMap(({ seed = 0 }) => {
    const episodes = planEpisodes(new Random(seed), { faults: FAULT_NAMES, servers: 2, leaseTtlMs: 3_000 });
    return Array.from({ length: EPISODES }, () => episodes.next().value.faults.map(({ name }) => name)).flat();
  });
  // Clients abort all the time, and a drain is two of the others at once.
  expect(FAULT_NAMES.filter((name) => !["abort", "drain", ...names].includes(name))).toEqual([]);
  const placesOf = (runs: typeof USUAL_RUNS) => new Set(runs.flatMap(({ backend, store }) => [backend, store]));
  expect(placesOf(USUAL_RUNS)).toEqual(placesOf(LONG_RUNS));
});
