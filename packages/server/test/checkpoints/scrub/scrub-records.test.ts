import { expect, test } from "vitest";
import { ScrubRecords } from "../../../src/checkpoints/scrub/scrub-records.ts";
import { DirectoryStore } from "../../../src/store/directory/directory-store.ts";
import { temporaryFolder } from "../../store/temporary-folder.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = Date.parse("2026-11-15T12:00:00.000Z");

test("of servers that want to begin at once one does, and none again before it is due", async () => {
  const store = await DirectoryStore.open(await temporaryFolder());
  const begin = async (nowMs: number) => await new ScrubRecords(store).begin(nowMs, nowMs - HOUR_MS);
  const begun = await Promise.all([begin(NOW_MS), begin(NOW_MS), begin(NOW_MS)]);
  expect(begun.filter(Boolean)).toHaveLength(1);
  expect(await begin(NOW_MS + HOUR_MS - 1)).toBe(false);
  // Whether that one was killed nobody knows: it has had its time.
  expect(await begin(NOW_MS + HOUR_MS)).toBe(true);
});

test("after one that was stopped somebody else begins; one that ended counts from its beginning", async () => {
  const records = new ScrubRecords(await DirectoryStore.open(await temporaryFolder()));
  const begin = async (nowMs: number) => await records.begin(nowMs, nowMs - HOUR_MS);
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

test("a record that cannot be read is as good as none", async () => {
  const store = await DirectoryStore.open(await temporaryFolder());
  await store.swapCell("scrub/record.json", undefined, Buffer.from("{"));
  const records = new ScrubRecords(store);
  expect([await records.last(), await records.begin(NOW_MS, 0)]).toEqual([undefined, true]);
});
