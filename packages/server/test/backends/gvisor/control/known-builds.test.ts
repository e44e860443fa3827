import { expect, test } from "vitest";
import { dialectOf } from "../../../../src/backends/gvisor/control/known-builds.ts";
import { NEWEST_ENGINE_VERSION, PINNED_ENGINE_VERSION } from "../../../../src/setup/engine/version.ts";

test("the two tested engines are driven by messages, and no other build", () => {
  expect(dialectOf(PINNED_ENGINE_VERSION)).toEqual({});
  expect(dialectOf(NEWEST_ENGINE_VERSION)).toEqual({ waitForRestore: "containerManager.WaitRestore" });
  for (const other of ["20260622.0", "20240729.1", "unknown", "toString", "__proto__"])
    expect(dialectOf(other)).toBeUndefined();
});
