import { expect, it } from "vitest";
import { CollectorSeat } from "../../src/collection/collector-seat.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { MemoryStore } from "./memory-store.ts";

it("a record of a later format is left alone, and the server does not collect", async () => {
  const store = new MemoryStore();
  await store.swapCell("collection/record.json", undefined, Buffer.from('{"format":2,"seats":[]}'));
  const before = await store.readCell("collection/record.json");
  const seat = new CollectorSeat(store, { me: () => "here", isDead: async () => true });
  for (const removed of [false, true])
    await expect(seat.look(removed)).rejects.toMatchObject({ code: "not_supported" });
  await expect(seat.collected(1)).rejects.toMatchObject({ code: "not_supported" });
  expect(await store.readCell("collection/record.json")).toEqual(before);
});

it("a collector that resigned collects again after an hour, or after another server did", async () => {
  const [store, clock, dead] = [new MemoryStore(), new FakeClock(), new Set<string>()];
  const isDead = async (id: string): Promise<boolean> => dead.has(id);
  const [first, second] = ["first", "second"].map((id) => new CollectorSeat(store, { me: () => id, isDead, clock }));
  const has = async (seat: CollectorSeat | undefined): Promise<boolean> => (await seat?.look(false)) !== undefined;
  expect(await has(first)).toBe(true);
  await first?.leave();
  clock.advance(3_599_999);
  expect(await has(first)).toBe(false);
  clock.advance(1);
  expect(await has(first)).toBe(true);
  await first?.leave();
  expect([await has(first), await has(second), await has(first)]).toEqual([false, true, false]);
  dead.add("second");
  expect(await has(first)).toBe(true);
});
