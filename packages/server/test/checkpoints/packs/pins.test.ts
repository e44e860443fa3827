import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { condemn } from "../../../src/checkpoints/packs/condemned.ts";
import { PackPins, pinKey, PINS_FOLDER, readPin } from "../../../src/checkpoints/packs/pins.ts";
import type { ObjectStore } from "../../../src/store/store.ts";
import { MemoryStore } from "../../collection/memory-store.ts";
import { collect } from "../../store/store-contract.ts";

const BASE = { imageKey: "sandbox/checkpoints/checkpoint_1.img", packs: ["a-0", "a-1"] };

async function aStore(): Promise<{ store: MemoryStore; uuid: string; pins: PackPins }> {
  const store = new MemoryStore();
  await store.writeText(BASE.imageKey, "image");
  return { store, uuid: randomUUID(), pins: new PackPins(store, () => "server") };
}

function withFailing(store: ObjectStore, method: keyof ObjectStore, fails: () => boolean): ObjectStore {
  return new Proxy(store, {
    get: (target, property) => {
      if (property === method && fails()) throw new Error("The store is away.");
      const value: unknown = Reflect.get(target, property);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

it("pins the packs of an image until it is released", async () => {
  const { store, uuid, pins } = await aStore();
  const pin = await pins.hold({ uuid, base: BASE });
  expect(await readPin(store, pinKey(uuid))).toEqual({ format: 1, publisher: "server", uuid, uses: BASE.packs });
  expect(BASE.packs.map(pin.isCondemned)).toEqual([false, false]);
  expect(pin.isCondemned("other-0")).toBe(true);
  await pin.release();
  expect(await readPin(store, pinKey(uuid))).toBeUndefined();
});

it("uses no pack that any collection has condemned", async () => {
  const { store, uuid, pins } = await aStore();
  await condemn(store, randomUUID(), ["other-0"]);
  await condemn(store, randomUUID(), ["a-1"]);
  const pin = await pins.hold({ uuid, base: BASE });
  expect(BASE.packs.map(pin.isCondemned)).toEqual([false, true]);
});

it.each(['{"format":2}', "{"])("uses no pack if it cannot read a verdict: %s", async (text) => {
  const { store, uuid, pins } = await aStore();
  await store.writeText(`condemned/${randomUUID()}.json`, text);
  const pin = await pins.hold({ uuid, base: BASE });
  expect(BASE.packs.map(pin.isCondemned)).toEqual([true, true]);
});

it("uses no pack of a removed image", async () => {
  const { store, uuid, pins } = await aStore();
  await store.delete(BASE.imageKey);
  const pin = await pins.hold({ uuid, base: BASE });
  expect(BASE.packs.map(pin.isCondemned)).toEqual([true, true]);
});

it("reports a pin that it cannot read", async () => {
  const { store, uuid } = await aStore();
  await store.writeText(pinKey(uuid), '{"format":2}');
  expect(await readPin(store, pinKey(uuid))).toBe("unreadable");
  await store.writeText(pinKey(uuid), "{");
  expect(await readPin(store, pinKey(uuid))).toBe("unreadable");
});

it("leaves no pin when it cannot read its base", async () => {
  const { store, uuid } = await aStore();
  const pins = new PackPins(
    withFailing(store, "stat", () => true),
    () => "server",
  );
  await expect(pins.hold({ uuid, base: BASE })).rejects.toThrow("away");
  expect(await collect(store.list(PINS_FOLDER))).toEqual([]);
});

it("removes a pin later that it could not remove", async () => {
  const { store, uuid } = await aStore();
  let away = true;
  const pins = new PackPins(
    withFailing(store, "delete", () => away),
    () => "server",
  );
  await (await pins.hold({ uuid })).release();
  expect(await collect(store.list(PINS_FOLDER))).toHaveLength(1);
  away = false;
  await (await pins.hold({ uuid: randomUUID() })).release();
  expect(await collect(store.list(PINS_FOLDER))).toEqual([]);
});
