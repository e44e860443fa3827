import { describe, test } from "vitest";
import { whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { expectFullDiskDrained, expectFullDiskSurvived } from "./support/full-disk.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of a full disk on gVisor are skipped: ${missing}`);

describe.skipIf(missing !== undefined)("on gVisor, where the server keeps its files", () => {
  test("the disk is full during a save and during a restore", async ({ skip }) => {
    await expectFullDiskSurvived("the server keeps its files", "gvisor", skip);
  });

  test("the disk is full when the server is asked to end", async ({ skip }) => {
    await expectFullDiskDrained("the server keeps its files", "gvisor", skip);
  });
});
