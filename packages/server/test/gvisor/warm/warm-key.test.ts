import { expect, test } from "vitest";
import type { SandboxSpec } from "../../../src/backends/backend.ts";
import { warmKey } from "../../../src/backends/gvisor/warm/warm-key.ts";

const resources = { memoryBytes: 1, processes: 2, diskBytes: 3, fileBytes: 4 };
const defaults = { image: "host", resources };

function key(spec: Partial<SandboxSpec>, tenant?: string, sandboxId = "a"): string | undefined {
  const request = { sandboxId, spec: { env: {}, resources: {}, network: "none" as const, ...spec } };
  return warmKey(tenant === undefined ? request : { ...request, tenant }, defaults);
}

test("what asks for nothing of its own may be anybody's, under any name and with any variables", () => {
  const plain = key({});
  expect(plain).toBeDefined();
  expect(key({}, "key:1")).toBe(plain);
  expect(key({ env: { A: "b" } }, "key:2", "b")).toBe(plain);
  expect(key({ image: "host", resources: { processes: 2 } }, "key:2")).toBe(plain);
});

test.each([
  ["an image", { image: "tar:/x" }],
  ["a limit", { resources: { memoryBytes: 9 } }],
  ["a share of processors", { resources: { cpus: 1 } }],
])("what asks for %s of its own is kept for who asks", (_, spec) => {
  const own = key(spec, "key:1");
  expect(own).toBeDefined();
  expect(own).toBe(key(spec, "key:1"));
  expect(own).not.toBe(key(spec, "key:2"));
  expect(own).not.toBe(key({}, "key:1"));
  expect(key(spec)).toBeUndefined();
});

test("what has a network is not started ahead", () => {
  expect(key({ network: "sandbox" }, "key:1")).toBeUndefined();
});

test("nobody can write a key that is another's", () => {
  expect(key({ image: 'x",null]' }, "key:1")).not.toBe(key({ image: "x" }, "key:1"));
});
