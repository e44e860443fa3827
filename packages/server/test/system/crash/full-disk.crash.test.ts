import { test } from "vitest";
import { expectFullDiskDrained, expectFullDiskSurvived, PLACES } from "./support/full-disk.ts";

test.for(PLACES)("where %s, the disk is full during a save and during a restore", async (place, { skip }) => {
  await expectFullDiskSurvived(place, "fake", skip);
});

test.for(PLACES)("where %s, the disk is full when the server is asked to end", async (place, { skip }) => {
  await expectFullDiskDrained(place, "fake", skip);
});
