import { expect, test } from "vitest";
import { hasEngine, whyNotOn } from "../../../src/manager/ownership/machine-fit.ts";

const MACHINE = {
  engines: ["1", "2"],
  fetches_engines: false,
  platforms: ["systrap", "ptrace"],
  architecture: "x64",
  cpu_features: ["avx", "sse2"],
};
const NEEDS = { engine: "2", platform: "ptrace", architecture: "x64", cpuFeatures: ["avx"] };

test("a machine with everything that a state needs can load it", () => {
  expect(whyNotOn(MACHINE, NEEDS)).toEqual([]);
});

test.each([
  [{ engine: "3" }, "version 3 of the engine, and this server has 1, 2"],
  [{ platform: "kvm" }, "platform kvm, and this server has systrap, ptrace"],
  [{ architecture: "arm64" }, "on arm64, and this server is x64"],
  [{ cpuFeatures: ["avx", "avx512f"] }, "lacks avx512f"],
])("a machine that lacks %j says so", (other, reason) => {
  expect(whyNotOn(MACHINE, { ...NEEDS, ...other })).toEqual([expect.stringContaining(reason)]);
});

test("unknown facts exclude no machine, and an engine that can be fetched is not ready", () => {
  expect(whyNotOn({}, NEEDS)).toEqual([]);
  expect(whyNotOn(MACHINE, {})).toEqual([]);
  const fetching = { ...MACHINE, fetches_engines: true };
  expect([whyNotOn(fetching, { engine: "3" }), hasEngine(fetching, { engine: "3" })]).toEqual([[], false]);
  expect([hasEngine({}, { engine: "3" }), hasEngine(MACHINE, {})]).toEqual([true, true]);
});
