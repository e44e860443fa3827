import { expect, test } from "vitest";
import type { SandboxSpec } from "../../src/backends/backend.ts";
import { specHash } from "../../src/backends/spec-hash.ts";

const SPEC: SandboxSpec = { env: { A: "1", B: "2" }, resources: { cpus: 1 }, network: "none" };

test("is equal in any order, and differs for every difference", () => {
  const hash = specHash("fake", SPEC);
  expect(specHash("fake", { network: "none", resources: { cpus: 1 }, env: { B: "2", A: "1" } })).toBe(hash);
  const others = [
    specHash("docker", SPEC),
    specHash("fake", { ...SPEC, image: "x" }),
    specHash("fake", { ...SPEC, env: { A: "1" } }),
    specHash("fake", { ...SPEC, setup: ["a", "b"] }),
    specHash("fake", { ...SPEC, setup: ["b", "a"] }),
    specHash("fake", { ...SPEC, secretRefs: { T: "github" } }),
  ];
  expect(new Set([hash, ...others]).size).toBe(7);
});
