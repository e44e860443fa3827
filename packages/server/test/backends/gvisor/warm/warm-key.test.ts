import { expect, test } from "vitest";
import type { SandboxSpec } from "../../../../src/backends/backend.ts";
import { stateKey, stateKeyStart, warmKey } from "../../../../src/backends/gvisor/warm/warm-key.ts";

const resources = { memoryBytes: 1, processes: 2, diskBytes: 3, fileBytes: 4 };
const defaults = { image: "host", resources };

function key(spec: Partial<SandboxSpec>, tenant?: string, sandboxId = "a"): string | undefined {
  const request = { sandboxId, spec: { env: {}, resources: {}, network: "none" as const, ...spec } };
  return warmKey(tenant === undefined ? request : { ...request, tenant }, defaults);
}

test("a request with default settings may get any sandbox, with any name and variables", () => {
  const plain = key({});
  expect(plain).toBeDefined();
  expect(key({}, "key:1")).toBe(plain);
  expect(key({ env: { A: "b" } }, "key:2", "b")).toBe(plain);
  expect(key({ image: "host", resources: { processes: 2 } }, "key:2")).toBe(plain);
});

test.each([
  ["an image", { image: "tar:/x" }],
  ["a limit", { resources: { memoryBytes: 9 } }],
  ["a user", { user: "root" }],
  ["a share of processors", { resources: { cpus: 1 } }],
])("a sandbox with %s of its own is kept for those who ask for the same", (_, spec) => {
  const own = key(spec, "key:1");
  expect(own).toBeDefined();
  expect(own).toBe(key(spec, "key:1"));
  expect(own).not.toBe(key(spec, "key:2"));
  expect(own).not.toBe(key({}, "key:1"));
  expect(key(spec)).toBeUndefined();
});

test("a sandbox with a saved state is kept for requests for that state", () => {
  const request = (tenant?: string, more: Partial<SandboxSpec> = {}) => ({
    sandboxId: "a",
    spec: { env: {}, resources: {}, network: "none" as const, ...more },
    ...(tenant === undefined ? {} : { tenant }),
  });
  const own = stateKey(request("key:1"), "s1", defaults);
  expect(own).toBe(stateKey(request("key:1", { env: { A: "b" } }), "s1", defaults));
  expect(own?.startsWith(stateKeyStart("s1"))).toBe(true);
  expect(own?.startsWith(stateKeyStart("s"))).toBe(false);
  expect(own).not.toBe(stateKey(request("key:2"), "s1", defaults));
  expect(own).not.toBe(stateKey(request("key:1"), "s2", defaults));
  expect(own).not.toBe(stateKey(request("key:1", { resources: { memoryBytes: 9 } }), "s1", defaults));
  expect(stateKey(request(), "s1", defaults)).toBeUndefined();
  expect(key({})?.startsWith(stateKeyStart("s1"))).toBe(false);
});

test("nobody can forge the key of another caller", () => {
  expect(key({ image: 'x",null]' }, "key:1")).not.toBe(key({ image: "x" }, "key:1"));
});
