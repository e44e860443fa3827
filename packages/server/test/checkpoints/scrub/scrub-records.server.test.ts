import { expect, test } from "vitest";
import { ScrubRecords } from "../../../src/checkpoints/scrub/scrub-records.ts";
import { DirectoryStore } from "../../../src/store/directory/directory-store.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = Date.parse("2026-11-15T12:00:00.000Z");

function turn(nowMs: number, scrubber = "one", dead: readonly string[] = []) {
  return { nowMs, sinceMs: nowMs - HOUR_MS, scrubber, isDead: async (id: string) => dead.includes(id) };
}

test("one of several servers that start at once scrubs, and none again before it is due", async () => {
  const store = await DirectoryStore.open(await temporaryFolder());
  const begin = async (nowMs: number, who = "four") => await new ScrubRecords(store).begin(turn(nowMs, who));
  const begun = await Promise.all([begin(NOW_MS, "one"), begin(NOW_MS, "two"), begin(NOW_MS, "three")]);
  expect(begun.filter(Boolean)).toHaveLength(1);
  expect(await begin(NOW_MS + HOUR_MS - 1)).toBe(false);
  // It lives, as far as anybody knows: it has had its time.
  expect(await begin(NOW_MS + HOUR_MS)).toBe(true);
});

test("after a stopped scrub another server starts; a finished one counts from its start", async () => {
  const records = new ScrubRecords(await DirectoryStore.open(await temporaryFolder()));
  const begin = async (nowMs: number) => await records.begin(turn(nowMs));
  expect([await records.last(), await begin(NOW_MS)]).toEqual([undefined, true]);
  await records.stopped();
  expect(await begin(NOW_MS + 1)).toBe(true);
  const counts = { damaged_images: 1, damaged_blocks: 2, missing_packs: 0 };
  const last = { started_at: "2026-11-15T13:00:00.000Z", ended_at: "2026-11-15T13:10:00.000Z", ...counts };
  await records.ended(last);
  expect(await records.last()).toEqual(last);
  expect(await begin(NOW_MS + 2 * HOUR_MS - 1)).toBe(false);
  expect(await begin(NOW_MS + 2 * HOUR_MS)).toBe(true);
  expect(await records.last()).toEqual(last);
});

test("an unreadable record counts as missing", async () => {
  const store = await DirectoryStore.open(await temporaryFolder());
  await store.swapCell("scrub/record.json", undefined, Buffer.from("{"));
  const records = new ScrubRecords(store);
  expect([await records.last(), await records.begin(turn(NOW_MS))]).toEqual([undefined, true]);
});

test("a scrub that a dead server did not finish does not count; one that it finished does", async () => {
  const records = new ScrubRecords(await DirectoryStore.open(await temporaryFolder()));
  expect(await records.begin(turn(NOW_MS, "one"))).toBe(true);
  expect(await records.begin(turn(NOW_MS + 1, "two"))).toBe(false);
  expect(await records.begin(turn(NOW_MS + 1, "two", ["one"]))).toBe(true);
  // It was cut short and could not say so.
  expect(await records.begin(turn(NOW_MS + 2, "two", ["one"]))).toBe(true);
  const at = new Date(NOW_MS + 2).toISOString();
  await records.ended({ started_at: at, ended_at: at, damaged_images: 0, damaged_blocks: 0, missing_packs: 0 });
  expect(await records.begin(turn(NOW_MS + 3, "three", ["one", "two"]))).toBe(false);
});

test("after a user stops a scrub, none starts before it is due", async () => {
  const records = new ScrubRecords(await DirectoryStore.open(await temporaryFolder()));
  expect(await records.begin(turn(NOW_MS))).toBe(true);
  await records.hold(NOW_MS + 1000);
  await records.stopped();
  expect(await records.begin(turn(NOW_MS + 999))).toBe(false);
  expect(await records.begin(turn(NOW_MS + 1000))).toBe(true);
  await records.stopped();
  expect(await records.begin(turn(NOW_MS + 1001))).toBe(true);
});
