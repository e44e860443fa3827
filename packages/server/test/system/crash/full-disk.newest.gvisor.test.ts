import { describe, test } from "vitest";
import { whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { expectFullDiskDrained, expectFullDiskSurvived, PLACES } from "./support/full-disk.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of a full disk on gVisor are skipped: ${missing}`);

describe.skipIf(missing !== undefined)("on gVisor", () => {
  test.for(PLACES)("where %s, the disk is full during a save and during a restore", async (place, { skip }) => {
    await expectFullDiskSurvived(place, "gvisor", skip);
  });

  test.for(PLACES)("where %s, the disk is full when the server is told to end", async (place, { skip }) => {
    await expectFullDiskDrained(place, "gvisor", skip);
  });
});
