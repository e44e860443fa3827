import { test } from "vitest";
import { expectFullDiskSurvived, PLACES } from "./support/full-disk.ts";

test.for(PLACES)("where %s, the disk is full during a save and during a restore", async (place, { skip }) => {
  await expectFullDiskSurvived(place, "fake", skip);
});
