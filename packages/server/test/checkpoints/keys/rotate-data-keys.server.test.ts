import { describe, expect, it } from "vitest";
import { rotateDataKeys } from "../../../src/checkpoints/keys/rotate-data-keys.ts";
import type { ObjectStore } from "../../../src/store/store.ts";
import { collect } from "../../store/store-contract.ts";
import { filesIn, newId, newKey, openStore, serverKeys, serverOn } from "./key-lab.ts";
import { endingAt, interruptedAt, ROTATION_CALLS } from "./stores-that-end.ts";

const TEXT = Buffer.from("text ".repeat(1000));

/** Three sandboxes under the key "old", and one under its client's. */
async function openLab() {
  const { root, store } = await openStore();
  const keys = new Map([
    ["old", newKey()],
    ["new", newKey()],
  ]);
  const before = serverOn(store, serverKeys(keys, "old"));
  const saved: { readonly id: string; readonly name: string }[] = [];
  for (let count = 0; count < 3; count++) {
    const id = newId();
    saved.push({ id, name: (await before.save(id, { text: TEXT })).name });
  }
  const presentedKey = newKey();
  const encryption = { held_by: "client", key: presentedKey.fingerprint } as const;
  await before.save(newId(), { text: TEXT }, { encryption, presentedKey });
  return { root, store, keys, saved, masters: serverKeys(keys, "new", ["old"]) };
}

/** Two rotations to different keys: of those that come from the same, one after the other, and there and back. */
const PAIRS = [
  { first: ["new", "old"], second: ["newer", "old"] },
  { first: ["new", "old"], second: ["newer", "new", "old"] },
  { first: ["new", "newer", "old"], second: ["newer", "new", "old"] },
] as const;
/** The last one is not reached: should rotations come to ask for more, this says it. */
const STEPS = Array.from({ length: ROTATION_CALLS + 1 }, (_, index) => index + 1);

describe("two rotations to different keys at once", () => {
  it.each(PAIRS.flatMap((pair) => STEPS.map((step) => ({ ...pair, step }))))(
    "leave a key that opens: to $first, and at its step $step to $second",
    async ({ first, second, step }) => {
      const { store } = await openStore();
      const keys = new Map(["old", "new", "newer"].map((name) => [name, newKey()]));
      const id = newId();
      const { name } = await serverOn(store, serverKeys(keys, "old")).save(id, { text: TEXT });
      const [present, ...before] = first;
      const [other, ...otherBefore] = second;
      let interrupted = false;
      const meanwhile = async () => {
        interrupted = true;
        await rotateDataKeys(store, serverKeys(keys, other, otherBefore), { apply: true });
      };
      const masters = serverKeys(keys, present, before);
      const all = serverOn(store, serverKeys(keys, "old", ["new", "newer"]));
      // Once from the old key, and once where the cell has the new one already.
      for (let turn = 0; turn < 2; turn++) {
        await rotateDataKeys(interruptedAt(store, step, meanwhile), masters, { apply: true });
        expect(await all.load(id, name)).toEqual({ text: TEXT });
      }
      expect(interrupted).toBe(step <= ROTATION_CALLS);
    },
  );
});

describe("rotation", () => {
  it("makes the new key open everything, and the old one nothing", async () => {
    const { root, store, keys, saved, masters } = await openLab();
    const images = [...(await filesIn(root))].filter(([path]) => path.endsWith(".img"));
    expect(await rotateDataKeys(store, masters, { apply: false })).toMatchObject({ rewrapped: 3, client_held: 1 });
    expect(await rotateDataKeys(store, masters, { apply: true })).toEqual({
      rewrapped: 3,
      current: 0,
      client_held: 1,
      failed: [],
    });
    expect(await rotateDataKeys(store, masters, { apply: true })).toMatchObject({ rewrapped: 0, current: 3 });
    const onlyNew = serverOn(store, serverKeys(new Map([["new", keys.get("new") ?? newKey()]]), "new"));
    const onlyOld = serverOn(store, serverKeys(new Map([["old", keys.get("old") ?? newKey()]]), "old"));
    for (const { id, name } of saved) {
      expect(await onlyNew.load(id, name)).toEqual({ text: TEXT });
      await expect(onlyOld.load(id, name)).rejects.toMatchObject({ code: "key_unavailable" });
    }
    const after = await filesIn(root);
    for (const [path, bytes] of images) expect(after.get(path)).toEqual(bytes);
    // No file of the store, nor an older version of one, is encrypted with the old key.
    const wrapped = [...after.keys()].filter((path) => path.includes(keys.get("old")?.fingerprint ?? "?"));
    expect(wrapped).toEqual([]);
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])(
    "that is interrupted after %i changes leaves everything readable, and the next one finishes it",
    async (last) => {
      const { store, saved, masters } = await openLab();
      await expect(rotateDataKeys(endingAt(store, last), masters, { apply: true })).rejects.toThrow("killed");
      const server = serverOn(store, masters);
      for (const { id, name } of saved) expect(await server.load(id, name)).toEqual({ text: TEXT });
      await rotateDataKeys(store, masters, { apply: true });
      for (const { id, name } of saved) expect(await server.load(id, name)).toEqual({ text: TEXT });
      // One cell and one key for each, the client's too.
      expect((await collect(store.list("data-keys"))).filter(({ key }) => key.endsWith(".key"))).toHaveLength(4);
    },
  );

  it("continues with the data keys of sandboxes that are saved meanwhile", async () => {
    const { store, saved, masters } = await openLab();
    const server = serverOn(store, masters);
    const [{ id, name } = { id: "", name: "" }] = saved;
    const next = await server.save(id, { text: TEXT }, { parent: name });
    await rotateDataKeys(store, masters, { apply: true });
    const last = await server.save(id, { text: TEXT }, { parent: next.name });
    expect(await server.load(id, last.name)).toEqual({ text: TEXT });
    expect(await collect(store.listCells("data-keys"))).toHaveLength(4);
  });

  it("reports keys that it cannot open, and rotates the rest", async () => {
    const { store, keys, masters } = await openLab();
    keys.set("lost", newKey());
    const encryption = { held_by: "server", key: "lost" } as const;
    await serverOn(store, serverKeys(keys)).save(newId(), { text: TEXT }, { encryption });
    keys.delete("lost");
    const rotation = await rotateDataKeys(store, masters, { apply: true });
    expect(rotation).toMatchObject({ rewrapped: 3, failed: [{ error: "key_unavailable" }] });
  });

  it("reports a missing current key, instead of using an old one", async () => {
    const { store, keys } = await openLab();
    const rotation = await rotateDataKeys(store, serverKeys(keys, undefined, ["old"]), { apply: true });
    expect(rotation).toMatchObject({ rewrapped: 0, current: 0, client_held: 1 });
    expect(rotation.failed.map(({ error }) => error)).toEqual(["bad_request", "bad_request", "bad_request"]);
  });

  it("names the missing secret if the server has others", async () => {
    const { store, keys, saved, masters } = await openLab();
    keys.delete("old");
    const { id, name } = saved[0] ?? { id: "", name: "" };
    await expect(serverOn(store, masters).load(id, name)).rejects.toMatchObject({
      code: "key_unavailable",
      details: { key: "old" },
    });
  });

  it("does not count a missing key as encrypted", async () => {
    const { store, saved, masters } = await openLab();
    await rotateDataKeys(store, masters, { apply: true });
    const present = (await masters.resolve("new")).fingerprint;
    const blobs = (await collect(store.list("data-keys"))).filter(({ key }) => key.includes(`/${present}.`));
    await store.delete(blobs[0]?.key ?? "");
    for (const apply of [false, true]) {
      const rotation = await rotateDataKeys(store, masters, { apply });
      expect(rotation).toMatchObject({ current: saved.length - 1, failed: [{ error: "image_damaged" }] });
    }
  });

  it("does not bring back a key that is removed meanwhile", async () => {
    const { store, saved, masters } = await openLab();
    const server = serverOn(store, masters);
    const raced = new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (name === "write") {
          return async (...args: Parameters<ObjectStore["write"]>) => {
            for (const { id } of saved) await server.checkpoints.removeAll(id);
            return await target.write(...args);
          };
        }
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    await rotateDataKeys(raced, masters, { apply: true });
    const left = (await collect(store.list("data-keys"))).filter(({ key }) => key.endsWith(".key"));
    expect(left).toHaveLength(1);
  });
});
