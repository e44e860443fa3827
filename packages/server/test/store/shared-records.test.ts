import { expect, test } from "vitest";
import { SharedRecords } from "../../src/store/shared-records.ts";
import { MemoryStore } from "../collection/memory-store.ts";

const HOUR_MS = 3_600_000;
const NOON = Date.parse("2026-05-10T12:00:00Z");

function records(startMs = NOON, store = new MemoryStore()) {
  let nowMs = startMs;
  const shared = new SharedRecords(store, { wallMs: () => nowMs, monotonicMs: () => nowMs });
  const put = async (name: string): Promise<void> => {
    const body = Buffer.from(JSON.stringify({ name }));
    expect(await shared.swap(shared.keyOf("calls", name), undefined, body)).toBe(true);
  };
  const has = async (name: string): Promise<boolean> => (await shared.find(shared.keysOf("calls", name))) !== undefined;
  return { store, shared, put, has, pass: (ms: number) => void (nowMs += ms) };
}

async function daysIn(store: MemoryStore): Promise<string[]> {
  return (await Array.fromAsync(store.listFolders("shared"))).toSorted();
}

test("a record is found until the end of its day, and for two hours after it was written", async () => {
  const { put, has, pass } = records(Date.parse("2026-05-10T23:00:00Z"));
  await put("late");
  pass(1.9 * HOUR_MS);
  expect(await has("late")).toBe(true);
  pass(2 * HOUR_MS);
  expect(await has("late")).toBe(false);
  await put("early");
  pass(20 * HOUR_MS);
  expect(await has("early")).toBe(true);
});

test("two servers that create the same name create one record", async () => {
  const { shared } = records();
  const key = shared.keyOf("calls", "one");
  const outcomes = await Promise.all(["a", "b", "c"].map((text) => shared.swap(key, undefined, Buffer.from(text))));
  expect(outcomes.filter(Boolean)).toHaveLength(1);
});

test("whole days expire, and days that may still be needed stay", async () => {
  const { store, shared, put, pass } = records();
  for (let day = 0; day < 5; day += 1) {
    await put(`record ${day}`);
    pass(24 * HOUR_MS);
  }
  await shared.sweep();
  expect(await daysIn(store)).toEqual(["2026-05-13", "2026-05-14"]);
});

test("a server whose clock is days ahead removes no day that others use", async () => {
  const { store, shared, put } = records();
  await put("present");
  const ahead = records(NOON + 5 * 24 * HOUR_MS, store);
  await ahead.put("future");
  await ahead.shared.sweep();
  await shared.sweep();
  expect(await daysIn(store)).toEqual(["2026-05-10", "2026-05-15"]);
});

test("days from before a restart expire, also if nobody else writes", async () => {
  const { store, put } = records();
  await put("before");
  const restarted = records(NOON + 24 * HOUR_MS, store);
  for (let day = 0; day < 4; day += 1) {
    await restarted.put(`record ${day}`);
    await restarted.shared.sweep();
    restarted.pass(24 * HOUR_MS);
  }
  expect(await daysIn(store)).toEqual(["2026-05-12", "2026-05-13", "2026-05-14"]);
});
