import { expect, test } from "vitest";
import { findEntry, REGISTRY } from "../src/registry.ts";

test("pause and resume are commands too, and every name leads to one command", () => {
  expect([findEntry("pause")?.name, findEntry("resume")?.name]).toEqual(["checkpoint", "attach"]);
  const names = REGISTRY.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  expect(new Set(names).size).toBe(names.length);
});
