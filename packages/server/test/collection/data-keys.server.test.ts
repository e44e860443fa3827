import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { newKey, serverKeys, serverOn } from "../checkpoints/keys/key-lab.ts";
import { stateOf } from "../checkpoints/block-image/block-images.ts";
import { newSnapshot } from "../checkpoints/snapshot-samples.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { newSandbox } from "../lease/samples.ts";
import { at, twoInstances } from "../lease/test-instances.ts";
import { collect } from "../store/store-contract.ts";

const TEXT = Buffer.from("text ".repeat(1000));

async function openLab() {
  const { a, store, root, id } = await twoInstances();
  const server = serverOn(store, serverKeys(new Map([["main", newKey()]]), "main"));
  await a.create(id, newSandbox());
  const saved = await server.save(id, { text: TEXT });
  await a.publish(at(id), saved);
  const context = { store, clock: new FakeClock(), keep: {} };
  const dataKeys = async () => (await collect(store.list("data-keys"))).filter(({ key }) => key.endsWith(".key"));
  return {
    a,
    store,
    root,
    id,
    server,
    saved,
    dataKeys,
    collect: async (apply = true) => collectGarbage({ ...context, apply }),
  };
}

it("leaves the data keys of stored sandboxes, running sandboxes and snapshots", async () => {
  const { a, id, server, saved, dataKeys, collect: collectNow } = await openLab();
  const base = `${id}/checkpoints/${saved.name}`;
  const state = await stateOf({ text: TEXT });
  await server.snapshots.save(newSnapshot({ name: "base" }), async () => ({ state }), { replaceName: true, base });
  await collectNow();
  await a.destroy(id);
  await collectNow();
  expect(await dataKeys()).toHaveLength(1);
  const { id: snapshotId } = (await server.snapshots.get("base")) ?? { id: "" };
  await server.snapshots.verify(snapshotId);
});

it("removes the key of a sandbox whose deletion was interrupted; a dry run reports it", async () => {
  const { a, id, dataKeys, collect: collectNow } = await openLab();
  await a.destroy(id);
  const foreseen = await collectNow(false);
  expect(foreseen.garbage.map(({ kind }) => kind)).toContain("data-key");
  expect(await dataKeys()).toHaveLength(1);
  expect(await collectNow()).toEqual(foreseen);
  expect(await dataKeys()).toEqual([]);
  expect((await collectNow()).garbage).toEqual([]);
});

it("completes an interrupted removal, and removes a holder that was never created", async () => {
  const { store, id, server, saved, dataKeys, collect: collectNow } = await openLab();
  const [cell = ""] = await collect(store.listCells("data-keys"));
  const keyId = cell.slice("data-keys/".length, -".json".length);
  const base = `${id}/checkpoints/${saved.name}`;
  await server.dataKeys.forWriting({}, `snapshot:${randomUUID()}`, base);
  await collectNow();
  const { body } = (await store.readCell(cell)) ?? { body: Buffer.alloc(0) };
  expect(JSON.parse(Buffer.from(body).toString())).toMatchObject({ state: "kept", holders: [`sandbox:${id}`] });
  await store.deleteCell(cell);
  // An image is under it: anyone who restores the cell could open that again.
  for (const apply of [false, true]) {
    expect((await collectNow(apply)).left.map(({ key }) => key)).toContain(`data-keys/${keyId}`);
    expect(await dataKeys()).toHaveLength(1);
  }
  await store.delete(base);
  await collectNow();
  expect(await dataKeys()).toEqual([]);
  expect(keyId).toMatch(/^[0-9a-f-]{36}$/);
});

it("keeps the data key of a folder without a head", async () => {
  const { root, id, server, saved, dataKeys, collect: collectNow } = await openLab();
  await rm(join(root, id, "metadata.json"));
  await rm(join(root, id, ".head"), { recursive: true });
  await collectNow();
  expect(await dataKeys()).toHaveLength(1);
  expect(await server.load(id, saved.name)).toEqual({ text: TEXT });
});

/** A sandbox whose newest checkpoint is under another data key than the first one, which is removed. */
async function openLabOfTwoKeys() {
  const lab = await openLab();
  const { a, store, id, server, saved } = lab;
  const masters = serverKeys(new Map([["main", newKey()]]), "main");
  // Nobody can open the first data key any more, so that there is a second one.
  const after = serverOn(store, masters);
  const second = await after.save(id, { text: TEXT }, { parent: saved.name });
  await a.publish(at(id), second);
  expect(await lab.dataKeys()).toHaveLength(2);
  return { ...lab, server: after, first: server, second };
}

it("removes a data key when retention has removed its last image, after two collections", async () => {
  const { id, server, second, dataKeys, collect: collectNow } = await openLabOfTwoKeys();
  await collectNow();
  await collectNow();
  expect(await dataKeys()).toHaveLength(2);
  await server.checkpoints.prune(id, second.name, { keep_last: 1 });
  await collectNow();
  expect(await dataKeys()).toHaveLength(2);
  const foreseen = await collectNow(false);
  expect(foreseen.garbage.map(({ kind }) => kind)).toEqual(["data-key"]);
  expect(await dataKeys()).toHaveLength(2);
  expect(await collectNow()).toEqual(foreseen);
  expect(await dataKeys()).toHaveLength(1);
  expect(await server.load(id, second.name)).toEqual({ text: TEXT });
});

it.each(["before the mark", "before the release"])(
  "leaves a data key under which an image is written meanwhile: %s",
  async (when) => {
    const { store, id, first, server, saved, second, dataKeys, collect: collectNow } = await openLabOfTwoKeys();
    const held = await first.dataKeys.forWriting({}, `sandbox:${id}`, `${id}/checkpoints/${saved.name}`);
    expect(held?.fresh).toBe(false);
    await server.checkpoints.prune(id, second.name, { keep_last: 1 });
    if (when === "before the release") await collectNow();
    const place = async (): Promise<void> => {
      const key = `${id}/checkpoints/checkpoint_1790000009999.img`;
      const label = { sandboxId: id, createdAt: new Date(0).toISOString(), parent: null };
      await first.images.save([key], await stateOf({ text: TEXT }), label, { dataKey: held });
      expect(await first.dataKeys.confirm(held?.id ?? "", `sandbox:${id}`)).toBe(true);
    };
    // At the end of a look for its images, just before what follows of it.
    let isPlaced = false;
    const looked = new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (name !== "swapCell") return typeof value === "function" ? (value.bind(target) as unknown) : value;
        return async (...args: Parameters<typeof store.swapCell>) => {
          if (!isPlaced && args[0].includes(held?.id ?? "?")) {
            isPlaced = true;
            await place();
          }
          return await target.swapCell(...args);
        };
      },
    });
    await collectGarbage({ store: looked, clock: new FakeClock(), keep: {}, apply: true });
    expect(isPlaced).toBe(true);
    await collectNow();
    await collectNow();
    expect(await dataKeys()).toHaveLength(2);
    expect(await first.load(id, "checkpoint_1790000009999.img")).toEqual({ text: TEXT });
  },
);

it("fails a save whose data key was removed meanwhile", async () => {
  const { store, id, server } = await openLab();
  const saving = server.images.withKey({}, `sandbox:${id}`, undefined, async (dataKey) => {
    await server.dataKeys.release(dataKey?.id ?? "", `sandbox:${id}`);
  });
  await expect(saving).rejects.toMatchObject({ code: "checkpoint_failed" });
  expect(await collect(store.listCells("data-keys"))).toHaveLength(1);
});
