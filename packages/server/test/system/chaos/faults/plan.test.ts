import { expect, test } from "vitest";
import { Random } from "../../../lease/simulation/random.ts";
import { FAULT_NAMES, type FaultName } from "./fault-names.ts";
import { planEpisodes, type Episode } from "./plan.ts";

function episodes(seed: number, faults: readonly FaultName[], count = 300): Episode[] {
  const plan = planEpisodes(new Random(seed), { faults, servers: 3, leaseTtlMs: 1_000 });
  return Array.from({ length: count }, () => plan.next().value);
}

function namesIn(planned: readonly Episode[]): Set<string> {
  return new Set(planned.flatMap(({ faults }) => faults.map(({ name }) => name)));
}

test("a seed makes the same plan each time, and another seed another", () => {
  expect(episodes(7, FAULT_NAMES)).toEqual(episodes(7, FAULT_NAMES));
  expect(episodes(7, FAULT_NAMES)).not.toEqual(episodes(8, FAULT_NAMES));
});

test("every enabled fault happens before one is repeated, and no other happens", () => {
  const notPlanned: readonly FaultName[] = ["abort", "drain"];
  const planned = FAULT_NAMES.filter((name) => !notPlanned.includes(name));
  const firsts = episodes(1, FAULT_NAMES, planned.length).map(({ faults: [first] }) => first?.name);
  expect(new Set(firsts)).toEqual(new Set(planned));
  expect(namesIn(episodes(1, FAULT_NAMES))).toEqual(new Set(planned));
  expect(namesIn(episodes(1, ["kill", "full"]))).toEqual(new Set(["kill", "full"]));
  expect(namesIn(episodes(1, ["abort"]))).toEqual(new Set());
});

test("an orderly stop meets an unavailable store only if that is enabled", () => {
  const both = ({ faults }: Episode): boolean =>
    faults.some(({ name }) => name === "term") && faults.some(({ name }) => name === "down");
  expect(episodes(1, ["term", "down"]).some(both)).toBe(false);
  expect(episodes(1, ["term", "down", "drain"]).some(both)).toBe(true);
});

test("servers are stopped and cut off beyond their lease", () => {
  for (const { faults } of episodes(1, ["stop", "cut"])) {
    for (const { forMs } of faults) expect(forMs).toBeGreaterThan(1_500);
  }
});
