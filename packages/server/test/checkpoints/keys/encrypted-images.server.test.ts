import { randomBytes } from "node:crypto";
import { cp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { dataKeyOfImage } from "../../../src/checkpoints/open-image.ts";
import { DirectoryStore } from "../../../src/store/directory/directory-store.ts";
import type { ObjectStore } from "../../../src/store/store.ts";
import { collect } from "../../store/store-contract.ts";
import { stateOf, withNewPages } from "../block-image/block-images.ts";
import { newSnapshot } from "../snapshot-samples.ts";
import { filesIn, newId, newKey, openStore, serverKeys, serverOn } from "./key-lab.ts";

const SECRET = "a sentence that nobody else may read";
const TEXT = Buffer.from(`${SECRET}\n`.repeat(20_000));
const client = (fingerprint: string) => ({ held_by: "client", key: fingerprint }) as const;
const named = (key: string) => ({ held_by: "server", key }) as const;

/** A store whose writes of blobs are what a test makes of them. */
function changedStore(
  store: ObjectStore,
  change: (key: string, write: () => Promise<unknown>) => Promise<unknown>,
): ObjectStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (name !== "write") return value.bind(target) as unknown;
      return (...args: Parameters<ObjectStore["write"]>) => change(args[0], async () => await target.write(...args));
    },
  });
}

describe("an encrypted image", () => {
  it("is loaded unchanged, and nothing of it can be read in the store", async () => {
    const { root, store } = await openStore();
    const server = serverOn(store, serverKeys(new Map([["main", newKey()]]), "main"));
    const sandboxId = newId();
    const small = Buffer.from(SECRET);
    // Incompressible data would be in the store unchanged.
    const random = randomBytes(400_000);
    const { name } = await server.save(sandboxId, { text: TEXT, small, random });
    const changed = withNewPages(TEXT, [3]);
    const next = await server.save(sandboxId, { text: changed, small }, { parent: name });
    const files = Buffer.from(`${SECRET}.txt`);
    const state = await stateOf({ text: TEXT });
    const { snapshot } = await server.snapshots.save(newSnapshot({ name: null }), async () => ({ state, files }), {
      replaceName: true,
    });
    expect(await server.load(sandboxId, name)).toEqual({ text: TEXT, small, random });
    expect(await server.load(sandboxId, next.name)).toEqual({ text: changed, small });
    expect(await server.snapshots.readFiles(snapshot.id)).toEqual(files);
    const stored = await filesIn(root);
    expect(stored.size).toBeGreaterThan(5);
    const piece = random.subarray(300_000, 300_032);
    const isReadable = ([, bytes]: readonly [string, Buffer]): boolean =>
      bytes.includes(SECRET.slice(0, 20)) || bytes.includes(piece);
    expect([...stored].filter(isReadable)).toEqual([]);
    await serverOn(store).save(newId(), { small, random });
    expect([...(await filesIn(root))].filter(isReadable)).not.toEqual([]);
  });

  it("shares blocks with the previous one, under the same data key", async () => {
    const { store } = await openStore();
    const server = serverOn(store, serverKeys(new Map([["main", newKey()]]), "main"));
    const sandboxId = newId();
    const memory = randomBytes(4 * 1024 * 1024);
    const first = await server.save(sandboxId, { memory });
    const second = await server.save(sandboxId, { memory: withNewPages(memory, [1]) }, { parent: first.name });
    expect(second.added_bytes).toBeLessThan(memory.byteLength / 20);
    expect(await collect(store.listCells("data-keys"))).toHaveLength(1);
  });

  it("shares nothing with the same content under another key", async () => {
    const { store } = await openStore();
    const keys = new Map([
      ["first", newKey()],
      ["second", newKey()],
    ]);
    const server = serverOn(store, serverKeys(keys));
    const [mine, yours] = [newId(), newId()];
    const memory = randomBytes(2 * 1024 * 1024);
    const first = await server.save(mine, { memory }, { encryption: named("first") });
    const base = `${mine}/checkpoints/${first.name}`;
    const second = await server.save(yours, { memory }, { encryption: named("second"), base });
    expect(second.added_bytes).toBeGreaterThan(memory.byteLength);
    const keyOf = async (sandboxId: string, name: string) =>
      await dataKeyOfImage(store, `${sandboxId}/checkpoints/${name}`);
    expect(await keyOf(mine, first.name)).not.toBe(await keyOf(yours, second.name));
    // Without a word, and without a key of the server, it does not become readable.
    const other = newId();
    const kept = await server.save(other, { memory }, { base });
    expect(await keyOf(other, kept.name)).toBe(await keyOf(mine, first.name));
    const contents = [...(await filesIn(store.address))]
      .filter(([path]) => path.endsWith(".pack"))
      .map(([, bytes]) => bytes.subarray(16, 16 + 4096).toString("hex"))
      .toSorted();
    expect(new Set(contents).size).toBe(contents.length);
  });

  it("names the needed key, and the given one", async () => {
    const { store } = await openStore();
    const [right, wrong] = [newKey(), newKey()];
    const server = serverOn(store, serverKeys(new Map([["main", right]]), "main"));
    const sandboxId = newId();
    const { name } = await server.save(sandboxId, { text: TEXT });
    const without = serverOn(store);
    await expect(without.load(sandboxId, name)).rejects.toMatchObject({
      code: "key_unavailable",
      details: { key: "main", fingerprint: right.fingerprint },
    });
    const other = serverOn(store, serverKeys(new Map([["main", wrong]]), "main"));
    await expect(other.load(sandboxId, name)).rejects.toMatchObject({
      code: "wrong_key",
      details: { fingerprint: right.fingerprint, given: wrong.fingerprint },
    });
    expect(await without.checkpoints.list(sandboxId)).toHaveLength(1);
    // An image that cannot be opened is not used as a base either.
    const base = `${sandboxId}/checkpoints/${name}`;
    await other.save(newId(), { text: TEXT }, { base });
    await expect(without.save(newId(), { text: TEXT }, { base })).rejects.toMatchObject({ code: "key_unavailable" });
    expect(await server.load(sandboxId, name)).toEqual({ text: TEXT });
  });

  it("keeps its key if a first save failed and the image may exist", async () => {
    const { store } = await openStore();
    const masters = serverKeys(new Map([["main", newKey()]]), "main");
    let isAway = false;
    // The image is written, the answer is lost, and then the store is away.
    const flaky = changedStore(store, (key, write) =>
      key.endsWith(".img") ? write().then(() => Promise.reject(((isAway = true), new Error("lost")))) : write(),
    );
    const away = new Proxy(flaky, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target) as unknown;
        if (name !== "stat") return value;
        return async (key: string) => {
          if (isAway) throw new Error("away");
          return await store.stat(key);
        };
      },
    });
    const sandboxId = newId();
    await expect(serverOn(away, masters).save(sandboxId, { text: TEXT })).rejects.toThrow("lost");
    const server = serverOn(store, masters);
    const [there] = await server.checkpoints.list(sandboxId);
    expect(await server.load(sandboxId, there?.name ?? "")).toEqual({ text: TEXT });
  });

  it("that could not be written leaves no data key, and no holder of one", async () => {
    const { store } = await openStore();
    const masters = serverKeys(new Map([["main", newKey()]]), "main");
    const without = (suffix: string) =>
      serverOn(
        changedStore(store, (key, write) => (key.endsWith(suffix) ? Promise.reject(new Error("full")) : write())),
        masters,
      );
    await expect(without(".key").save(newId(), { text: TEXT })).rejects.toThrow("full");
    await expect(without(".img").save(newId(), { text: TEXT })).rejects.toThrow("full");
    expect(await collect(store.listCells("data-keys"))).toEqual([]);
    const sandboxId = newId();
    const { name } = await serverOn(store, masters).save(sandboxId, { text: TEXT });
    const state = await stateOf({ text: TEXT });
    const base = `${sandboxId}/checkpoints/${name}`;
    const options = { replaceName: true, base };
    const saving = without(".img").snapshots.save(newSnapshot({ name: null }), async () => ({ state }), options);
    await expect(saving).rejects.toThrow("full");
    const [cell = ""] = await collect(store.listCells("data-keys"));
    const { body } = (await store.readCell(cell)) ?? { body: Buffer.alloc(0) };
    expect(JSON.parse(Buffer.from(body).toString())).toMatchObject({ holders: [`sandbox:${sandboxId}`] });
  });

  it("needs the key of its client each time", async () => {
    const { store } = await openStore();
    const presentedKey = newKey();
    const encryption = client(presentedKey.fingerprint);
    const server = serverOn(store, serverKeys(new Map([["main", newKey()]]), "main"));
    const sandboxId = newId();
    const { name } = await server.save(sandboxId, { text: TEXT }, { encryption, presentedKey });
    const fingerprint = presentedKey.fingerprint;
    expect(await server.load(sandboxId, name, { presentedKey })).toEqual({ text: TEXT });
    await expect(server.load(sandboxId, name)).rejects.toMatchObject({
      code: "key_required",
      details: { fingerprint },
    });
    await expect(server.load(sandboxId, name, { presentedKey: newKey() })).rejects.toMatchObject({ code: "wrong_key" });
    await expect(server.save(sandboxId, { text: TEXT }, { encryption })).rejects.toMatchObject({
      code: "key_required",
    });
  });

  it("marks no snapshot as damaged because a key is missing", async () => {
    const { store } = await openStore();
    const presentedKey = newKey();
    const server = serverOn(store);
    const described = { ...newSnapshot({ name: "base" }), encryption: client(presentedKey.fingerprint) };
    const capture = async () => ({ state: await stateOf({ text: TEXT }), files: Buffer.from("list") });
    const { snapshot } = await server.snapshots.save(described, capture, { replaceName: true, presentedKey });
    await expect(server.snapshots.verify(snapshot.id)).rejects.toMatchObject({ code: "key_required" });
    await expect(server.snapshots.readFiles(snapshot.id)).rejects.toMatchObject({ code: "key_required" });
    expect(await server.snapshots.get("base")).toMatchObject({ state: "ready" });
    expect(await server.snapshots.verify(snapshot.id, { presentedKey })).toMatchObject({ state: "ready" });
  });
});

describe("a data key", () => {
  it("is removed with its last user, which makes earlier copies unreadable", async () => {
    const { root, store } = await openStore();
    const masters = serverKeys(new Map([["main", newKey()]]), "main");
    const server = serverOn(store, masters);
    const [sandboxId, fork] = [newId(), newId()];
    const { name } = await server.save(sandboxId, { text: TEXT });
    const base = `${sandboxId}/checkpoints/${name}`;
    const state = await stateOf({ text: TEXT });
    const { snapshot } = await server.snapshots.save(newSnapshot({ name: null }), async () => ({ state }), {
      replaceName: true,
      base,
    });
    await server.save(fork, { text: withNewPages(TEXT, [1]) }, { base });
    expect(await collect(store.listCells("data-keys"))).toHaveLength(1);
    const copy = `${root}-copy`;
    await cp(root, copy, { recursive: true });
    await rm(join(copy, "data-keys"), { recursive: true });

    await server.checkpoints.removeAll(sandboxId);
    await server.checkpoints.removeAll(fork);
    expect(await collect(store.listCells("data-keys"))).toHaveLength(1);
    await server.snapshots.remove(snapshot.id, async () => {});
    expect(await collect(store.list("data-keys"))).toEqual([]);
    expect(await readdir(join(root, "data-keys"))).toEqual([]);

    // Images and packs that somebody kept, the master key, and what is left in the store.
    const kept = serverOn(await DirectoryStore.open(copy), masters);
    await expect(kept.load(sandboxId, name)).rejects.toMatchObject({ code: "image_damaged" });
    await rm(copy, { recursive: true });
  });

  it("accepts no user while it is being removed", async () => {
    const { store } = await openStore();
    const server = serverOn(store, serverKeys(new Map([["main", newKey()]]), "main"));
    const [sandboxId, fork] = [newId(), newId()];
    const { name } = await server.save(sandboxId, { text: TEXT });
    const base = `${sandboxId}/checkpoints/${name}`;
    const before = await dataKeyOfImage(store, base);
    await server.dataKeys.release(before ?? "", `sandbox:${sandboxId}`);
    const next = await server.save(fork, { text: TEXT }, { base });
    expect(await server.load(fork, next.name)).toEqual({ text: TEXT });
    expect(await dataKeyOfImage(store, `${fork}/checkpoints/${next.name}`)).not.toBe(before);
  });

  it("opens nothing from the moment its removal begins", async () => {
    const { store } = await openStore();
    const masters = serverKeys(new Map([["main", newKey()]]), "main");
    const server = serverOn(store, masters);
    const sandboxId = newId();
    const { name } = await server.save(sandboxId, { text: TEXT });
    const dataKey = (await dataKeyOfImage(store, `${sandboxId}/checkpoints/${name}`)) ?? "";
    const stuck = new Proxy(store, {
      get: (target, method) => {
        const value: unknown = Reflect.get(target, method, target);
        if (method === "deleteTree") return () => Promise.reject(new Error("killed"));
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    await expect(serverOn(stuck, masters).dataKeys.release(dataKey, `sandbox:${sandboxId}`)).rejects.toThrow("killed");
    await expect(server.load(sandboxId, name)).rejects.toMatchObject({ code: "image_damaged" });
  });

  it("is removed if its first use fails", async () => {
    const { store } = await openStore();
    const server = serverOn(store, serverKeys(new Map([["main", newKey()]]), "main"));
    const state = await stateOf({ text: TEXT });
    await rm(state.members[0]?.path ?? "");
    const saving = server.checkpoints.save(newId(), state, { wallMs: 1, parent: null });
    await expect(saving).rejects.toThrow("ENOENT");
    expect(await collect(store.list("data-keys"))).toEqual([]);
  });

  it("is refused if it was changed or belongs to another", async () => {
    const { root, store } = await openStore();
    const server = serverOn(store, serverKeys(new Map([["main", newKey()]]), "main"));
    const [sandboxId, other] = [newId(), newId()];
    const { name } = await server.save(sandboxId, { text: TEXT });
    const second = await server.save(other, { text: TEXT });
    const wrapped = [...(await filesIn(root))].filter(([path]) => path.endsWith(".key"));
    const [[path, bytes] = ["", Buffer.alloc(0)], [, swapped] = []] = wrapped;
    const isFirst = path.includes((await dataKeyOfImage(store, `${sandboxId}/checkpoints/${name}`)) ?? "?");
    const load = async () => await (isFirst ? server.load(sandboxId, name) : server.load(other, second.name));
    for (const place of [0, 20, bytes.byteLength - 1]) {
      const flipped = Buffer.from(bytes);
      flipped[place] = (flipped[place] ?? 0) ^ 1;
      await writeFile(path, flipped);
      await expect(load()).rejects.toMatchObject({ code: "image_damaged" });
    }
    await writeFile(path, swapped ?? "");
    await expect(load()).rejects.toMatchObject({ code: "image_damaged" });
    await writeFile(path, bytes);
    expect(await load()).toEqual({ text: TEXT });
  });
});
