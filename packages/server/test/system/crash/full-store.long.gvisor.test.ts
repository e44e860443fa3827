import { describe, test } from "vitest";
import { whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { expectFullDiskDrained, expectFullDiskSurvived } from "./support/full-disk.ts";

/** The server writes the store, not the engine: full-disk.crash.test.ts has the same on the fake backend, in every run. */
const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of a full disk on gVisor are skipped: ${missing}`);

describe.skipIf(missing !== undefined)("on gVisor, where the store is", () => {
  test("the disk is full during a save and during a restore", async ({ skip }) => {
    await expectFullDiskSurvived("the store is", "gvisor", skip);
  });

  test("the disk is full when the server is asked to end", async ({ skip }) => {
    await expectFullDiskDrained("the store is", "gvisor", skip);
  });
});
