import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { packId, packKey } from "../../src/checkpoints/packs/pack-names.ts";
import { BackgroundCollection } from "../../src/collection/background-collection.ts";
import { CollectorSeat } from "../../src/collection/collector-seat.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { MemoryStore } from "./memory-store.ts";
import { packsOfModel, writeModel } from "./packs-world.ts";

const EVERY_MS = 60_000;

function aloneAt(store: ObjectStore): CollectorSeat {
  return new CollectorSeat(store, { me: () => "here", isDead: async () => false });
}

it("collects when it is due, again after a failure, and reads each image once", async () => {
  const [store, clock] = [new MemoryStore(), new FakeClock()];
  const stray = packKey(packId(randomUUID(), 0));
  const image = await writeModel(store, randomUUID(), `${randomUUID()}/checkpoints/checkpoint_1.img`, undefined);
  await store.write(stray, [Buffer.from("blocks")]);
  const found: unknown[] = [];
  let [reads, isAway] = [0, true];
  const collection = new BackgroundCollection({
    store,
    clock,
    everyMs: EVERY_MS,
    seat: aloneAt(store),
    chance: () => 1,
    onCollected: (findings) => found.push(findings),
    onError: (error) => found.push(error),
    packsOfImage: async (...given) => {
      reads += 1;
      if (isAway) throw new Error("The store is away.");
      return await packsOfModel(...given);
    },
  });
  const afterNext = async (): Promise<unknown> => {
    const before = found.length;
    clock.advance(EVERY_MS);
    await expect.poll(() => found.length).toBe(before + 1);
    return found.at(-1);
  };
  clock.advance(EVERY_MS - 1);
  expect([found, reads]).toEqual([[], 0]);
  expect(await afterNext()).toMatchObject({ message: "The store is away." });
  isAway = false;
  expect(await afterNext()).toMatchObject({ garbage: [{ kind: "pack", key: stray, sizeBytes: 6 }] });
  expect(await afterNext()).toMatchObject({ garbage: [] });
  expect(reads).toBe(2);
  expect(image.packs.map((id) => store.has(packKey(id)))).toEqual([true]);
  await collection.close();
  clock.advance(EVERY_MS);
  expect(found).toHaveLength(3);
});

it("checks packs soon after images are removed, and everything when that is due", async () => {
  const [store, clock] = [new MemoryStore(), new FakeClock()];
  const image = await writeModel(store, randomUUID(), `${randomUUID()}/checkpoints/checkpoint_1.img`, undefined);
  const found: unknown[] = [];
  const collection = new BackgroundCollection({
    store,
    clock,
    everyMs: 3_600_000,
    seat: aloneAt(store),
    chance: () => 1,
    onCollected: (findings) => found.push(findings),
    onError: (error) => found.push(error),
    packsOfImage: packsOfModel,
  });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    for (let turn = 0; turn < 50; turn++) await setImmediate();
  };
  await store.delete(image.imageKey);
  for (let time = 0; time < 3; time++) collection.imagesRemoved();
  await pass(0);
  await pass(299_999);
  expect(found).toEqual([]);
  await pass(1);
  expect(found).toMatchObject([{ garbage: [{ kind: "pack" }] }]);
  await pass(3_299_999);
  expect(found).toHaveLength(1);
  await pass(1);
  expect(found).toMatchObject([{}, { garbage: [], left: [] }]);
  await collection.close();
});

function watched(everyMs: number) {
  const [store, clock] = [new MemoryStore(), new FakeClock()];
  const kinds: string[] = [];
  // Only a full pass looks at the servers.
  let all = false;
  const listCells = store.listCells.bind(store);
  store.listCells = (folder) => {
    if (folder.startsWith("instances")) all = true;
    return listCells(folder);
  };
  const collection = new BackgroundCollection({
    store,
    clock,
    everyMs,
    seat: aloneAt(store),
    chance: () => 1,
    onCollected: () => {
      kinds.push(all ? "all" : "packs");
      all = false;
      // While it was at work something else went.
      onLooked();
    },
    onError: (error) => kinds.push(String(error)),
    packsOfImage: packsOfModel,
  });
  let onLooked = (): void => {};
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    for (let turn = 0; turn < 50; turn++) await setImmediate();
  };
  return { collection, kinds, pass, afterEach: (then: () => void) => (onLooked = then) };
}

it("checks everything when that is due, even if images are removed all the time", async () => {
  const { collection, kinds, pass, afterEach } = watched(600_000);
  afterEach(() => collection.imagesRemoved());
  collection.imagesRemoved();
  await pass(0);
  for (let time = 0; time < 3; time++) await pass(300_000);
  expect(kinds).toEqual(["packs", "all", "packs"]);
  await collection.close();
});

it("checks packs once an hour where saves remove older images", async () => {
  const { collection, kinds, pass } = watched(24 * 3_600_000);
  for (let minute = 0; minute < 180; minute++) {
    collection.imageReplaced();
    await pass(60_000);
  }
  expect(kinds).toEqual(["packs", "packs", "packs"]);
  await collection.close();
});

it("one of several servers collects, and another one takes over when it is dead", async () => {
  const [store, clock] = [new MemoryStore(), new FakeClock()];
  const dead = new Set<string>();
  const worked: string[] = [];
  const start = (name: string): BackgroundCollection =>
    new BackgroundCollection({
      store,
      clock,
      everyMs: EVERY_MS,
      seat: new CollectorSeat(store, { me: () => name, isDead: async (each) => dead.has(each) }),
      chance: () => 1,
      onCollected: () => worked.push(name),
      onError: (error) => worked.push(String(error)),
      packsOfImage: packsOfModel,
    });
  const collections = ["a", "b", "c"].map(start);
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    for (let turn = 0; turn < 100; turn++) await setImmediate();
  };
  for (let round = 0; round < 3; round++) await pass(EVERY_MS);
  const [first = ""] = worked;
  expect(worked).toEqual([first, first, first]);
  dead.add(first);
  await collections[["a", "b", "c"].indexOf(first)]?.close();
  for (let round = 0; round < 2; round++) await pass(EVERY_MS);
  const [, , , second = ""] = worked;
  expect(worked).toEqual([first, first, first, second, second]);
  expect(second).not.toBe(first);
  for (const collection of collections) await collection.close();
});

it("the collector removes the packs of images that another server removed, and its successor removes the rest", async () => {
  const [store, clock] = [new MemoryStore(), new FakeClock()];
  const dead = new Set<string>();
  const found: string[] = [];
  let isAway = false;
  const start = (name: string): BackgroundCollection =>
    new BackgroundCollection({
      store,
      clock,
      everyMs: 24 * 3_600_000,
      seat: new CollectorSeat(store, { me: () => name, isDead: async (each) => dead.has(each) }),
      chance: () => 1,
      onCollected: ({ garbage }) => found.push(`${name} ${garbage.length}`),
      onError: () => found.push(`${name} failed`),
      packsOfImage: async (...given) => {
        if (isAway) throw new Error("The store is away.");
        return await packsOfModel(...given);
      },
    });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    for (let turn = 0; turn < 100; turn++) await setImmediate();
  };
  const first = start("first");
  await pass(300_000);
  const second = start("second");
  const image = await writeModel(store, randomUUID(), `${randomUUID()}/checkpoints/checkpoint_1.img`, undefined);
  await writeModel(store, randomUUID(), `${randomUUID()}/checkpoints/checkpoint_1.img`, undefined);
  await pass(300_000);
  expect(found).toEqual([]);
  await store.delete(image.imageKey);
  second.imagesRemoved();
  isAway = true;
  for (let round = 0; round < 2; round++) await pass(300_000);
  expect(found).toContain("first failed");
  isAway = false;
  dead.add("first");
  await first.close();
  for (let round = 0; round < 2; round++) await pass(300_000);
  expect(found.at(-1)).toBe("second 1");
  await second.close();
});

it("a collector that fails three times in a row lets another server collect", async () => {
  const [store, clock] = [new MemoryStore(), new FakeClock()];
  const worked: string[] = [];
  await writeModel(store, randomUUID(), `${randomUUID()}/checkpoints/checkpoint_1.img`, undefined);
  const start = (name: string): BackgroundCollection =>
    new BackgroundCollection({
      store,
      clock,
      everyMs: EVERY_MS,
      seat: new CollectorSeat(store, { me: () => name, isDead: async () => false, clock }),
      chance: () => 1,
      onCollected: () => worked.push(name),
      onError: () => worked.push(`${name} failed`),
      packsOfImage: async (...given) => {
        if (name === "broken") throw new Error("This server cannot read images.");
        return await packsOfModel(...given);
      },
    });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    for (let turn = 0; turn < 100; turn++) await setImmediate();
  };
  const broken = start("broken");
  await pass(EVERY_MS);
  const other = start("other");
  for (let round = 0; round < 4; round++) await pass(EVERY_MS);
  expect(worked.slice(0, 4)).toEqual(["broken failed", "broken failed", "broken failed", "other"]);
  expect(worked.slice(3)).not.toContain("broken failed");
  await broken.close();
  await other.close();
});
