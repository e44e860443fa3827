import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { packId, packKey } from "../../src/checkpoints/packs/pack-names.ts";
import { BackgroundCollection } from "../../src/collection/background-collection.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { MemoryStore } from "./memory-store.ts";
import { packsOfModel, writeModel } from "./packs-world.ts";

const EVERY_MS = 60_000;

it("collects when its time has come, again after a failure, and reads each image once", async () => {
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
