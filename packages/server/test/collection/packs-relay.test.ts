import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { packId, packKey } from "../../src/checkpoints/packs/pack-names.ts";
import { type PackPin, PackPins } from "../../src/checkpoints/packs/pins.ts";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { PackSurveyor } from "../../src/collection/pack-survey.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { MemoryStore } from "./memory-store.ts";
import { packsOfModel } from "./packs-world.ts";
import { replaced } from "./planted-bugs.ts";
import { Turns } from "./turns.ts";

/** A writer that has begun: it has pinned what its base has, and looked. */
interface Begun {
  readonly key: string;
  readonly pin: PackPin;
  readonly packs: readonly string[];
}

/**
 * Each image is removed as soon as the next one is begun, and is there only while the collector looks at pins: so it sees
 * neither an image nor, of those that were begun before it looked, a pin.
 */
it("a pack that passes from image to image unnoticed by the collector is kept", async () => {
  const store = new MemoryStore();
  const pack = packId(randomUUID(), 0);
  await store.write(packKey(pack), [Buffer.from("blocks")]);
  let count = 0;
  const begin = async (base: string): Promise<Begun> => {
    const packs = (await packsOfModel(store, base)) ?? [];
    const pin = await new PackPins(store, () => "").hold({ uuid: randomUUID(), base: { imageKey: base, packs } });
    await store.delete(base);
    return {
      key: `sandbox/checkpoints/checkpoint_${++count}.img`,
      pin,
      packs: packs.filter((id) => !pin.isCondemned(id)),
    };
  };
  const finish = async ({ key, pin, packs }: Begun): Promise<string> => {
    await store.write(key, [Buffer.from(JSON.stringify(packs))]);
    await pin.release();
    return key;
  };
  await store.write("first.img", [Buffer.from(JSON.stringify([pack]))]);
  let writer = await begin("first.img");
  const list = store.list.bind(store);
  store.list = async function* (folder) {
    if (folder !== "pins") return yield* list(folder);
    const image = await finish(writer);
    yield* await Array.fromAsync(list("pins"));
    writer = await begin(image);
  };
  const context = { clock: new FakeClock(), apply: true, keep: {}, packs: new PackSurveyor(packsOfModel) };
  for (let runs = 0; runs < 3; runs++) await collectGarbage({ store, ...context });
  const last = (await packsOfModel(store, await finish(writer))) ?? [];
  expect(last.filter((id) => !store.has(packKey(id)))).toEqual([]);
});

/**
 * The collector did not see the base in its first list, and reads the pins before the writer has pinned. The writer
 * reads the verdicts after all of that. Its base is removed as soon as the writer has seen it.
 */
it("a writer checks its base after it has read the verdicts", async () => {
  const store = new MemoryStore();
  const pack = packId(randomUUID(), 0);
  const base = { imageKey: "base.img", packs: [pack] };
  await store.write(packKey(pack), [Buffer.from("blocks")]);
  const hooked = (methods: Partial<ObjectStore>): ObjectStore => replaced(new Turns().storeOf(0, store), methods);

  const ended = Promise.withResolvers<void>();
  const heard = Promise.withResolvers<void>();
  const writerStore = hooked({
    list: async function* (folder) {
      heard.resolve();
      if (folder === "condemned") await ended.promise;
      yield* store.list(folder);
    },
    stat: async (key) => {
      const found = await store.stat(key);
      await store.delete(key);
      return found;
    },
  });
  let [imageLists, pinLists] = [0, 0];
  let writing: Promise<PackPin> | undefined;
  const collectorStore = hooked({
    list: async function* (folder) {
      yield* await Array.fromAsync(store.list(folder));
      if (folder === "" && ++imageLists === 1) await store.write(base.imageKey, [Buffer.from(JSON.stringify([pack]))]);
      if (folder !== "pins" || ++pinLists !== 2) return;
      writing = new PackPins(writerStore, () => "").hold({ uuid: randomUUID(), base });
      await heard.promise;
    },
  });
  const context = { clock: new FakeClock(), apply: true, keep: {}, packs: new PackSurveyor(packsOfModel) };
  await collectGarbage({ store: collectorStore, ...context });
  ended.resolve();
  const pin = await writing;
  expect([imageLists, pinLists]).toEqual([2, 2]);
  expect(pin?.isCondemned(pack) === false && !store.has(packKey(pack))).toBe(false);
});
