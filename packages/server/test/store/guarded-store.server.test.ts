import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { GuardedStore } from "../../src/store/guarded-store.ts";
import { KnownStores } from "../../src/store/known-stores.ts";
import { openDriver } from "../../src/store/open-driver.ts";
import { openStore, type StoreOptions } from "../../src/store/open-store.ts";
import { AmbiguousWriteError, type ObjectStore } from "../../src/store/store.ts";
import { bytes, collect, readAll } from "./store-contract.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { movedFolder, VANISHING, type VanishingFolder } from "../../../../test/kit/vanishing-folder.ts";

const GONE = { code: "store_unavailable", message: expect.stringContaining("store.json is missing") as unknown };

const CALLS: readonly (readonly [string, (store: ObjectStore) => Promise<unknown>])[] = [
  ["reads a cell", (store) => store.readCell("a/metadata.json")],
  ["reads a cell that was never there", (store) => store.readCell("none.json")],
  ["swaps a cell", async (store) => await store.swapCell("a/metadata.json", "1:x", bytes("2"))],
  ["creates a cell", (store) => store.swapCell("new/metadata.json", undefined, bytes("1"))],
  ["removes a cell", (store) => store.deleteCell("a/metadata.json")],
  ["lists cells", (store) => collect(store.listCells("a"))],
  ["lists marks", (store) => collect(store.listMarks("a"))],
  ["looks at a blob", (store) => store.stat("a/blob")],
  ["reads a blob", (store) => readAll(store, "a/blob")],
  ["writes a blob", (store) => store.write("b/blob", [bytes("content")])],
  ["writes a blob that must be new", (store) => store.write("b/blob", [bytes("content")], { ifAbsent: true })],
  ["writes text", (store) => store.writeText("b/latest", "text")],
  ["lists everything", (store) => collect(store.list(""))],
  ["lists folders", (store) => collect(store.listFolders(""))],
  ["removes a blob", (store) => store.delete("a/blob")],
  ["removes a tree", (store) => store.deleteTree("a")],
  ["tries it out", (store) => store.probe()],
  ["asks for it", async (store) => await store.verify?.()],
];

for (const [how, make, skipped] of VANISHING) {
  if (skipped !== undefined) console.log(`skipped: ${skipped}`);
  describe.skipIf(skipped !== undefined)(`a store in a folder that is ${how}`, () => {
    async function filled(): Promise<{ folder: VanishingFolder; store: ObjectStore }> {
      const folder = await make();
      const store = await openStore(folder.path);
      await store.swapCell("a/metadata.json", undefined, bytes("1"));
      await store.write("a/blob", [bytes("content")]);
      return { folder, store };
    }

    it.each(CALLS)(
      "is unavailable to a caller that %s, gets nothing, and is intact when it is back",
      async (_, call) => {
        const { folder, store } = await filled();
        await folder.vanish();
        await expect(call(store)).rejects.toMatchObject(GONE);
        expect(await folder.strays()).toEqual([]);
        await folder.comeBack();
        expect(Buffer.from((await store.readCell("a/metadata.json"))?.body ?? []).toString()).toBe("1");
        expect((await readAll(store, "a/blob")).toString()).toBe("content");
        expect((await store.swapCell("b/metadata.json", undefined, bytes("1"))).outcome).toBe("written");
      },
    );

    it("that vanishes while a blob is written acknowledges nothing, and gets nothing at its bare path", async () => {
      const { folder, store } = await filled();
      async function* vanishing(): AsyncIterable<Uint8Array> {
        yield bytes("half");
        await folder.vanish();
        yield bytes("other half");
      }
      await expect(store.write("b/blob", vanishing())).rejects.toMatchObject(GONE);
      expect(await folder.strays()).toEqual([]);
    });
  });
}

/** Runs something right after the store's own write, before its caller gets the answer. */
function afterSwap(inner: ObjectStore, action: () => Promise<void>): ObjectStore {
  return new Proxy(inner, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (name !== "swapCell") return typeof value === "function" ? (value.bind(target) as unknown) : value;
      return async (...parameters: Parameters<ObjectStore["swapCell"]>) => {
        const result = await target.swapCell(...parameters);
        await action();
        return result;
      };
    },
  });
}

test("a swap whose store disappears before the answer has an unknown outcome", async () => {
  const folder = await movedFolder();
  await openStore(folder.path);
  const { id } = JSON.parse(await readFile(join(folder.path, "store.json"), "utf8")) as { id: string };
  const store = new GuardedStore(
    afterSwap(await openDriver(folder.path), () => folder.vanish()),
    id,
  );
  await expect(store.swapCell("a.json", undefined, bytes("1"))).rejects.toBeInstanceOf(AmbiguousWriteError);
});

/** A store that is away while the driver does something for the first time, and back before anybody looks at its marker. */
async function awayDuring(method: keyof ObjectStore): Promise<ObjectStore> {
  const folder = await movedFolder();
  const filled = await openStore(folder.path);
  await filled.swapCell("a/metadata.json", undefined, bytes("1"));
  await filled.write("a/blob", [bytes("content")]);
  const { id } = JSON.parse(await readFile(join(folder.path, "store.json"), "utf8")) as { id: string };
  const driver = await openDriver(folder.path);
  let isFirst = true;
  const whileAway = async <T>(act: () => Promise<T>): Promise<T> => {
    if (!isFirst) return await act();
    isFirst = false;
    await folder.vanish();
    try {
      return await act();
    } finally {
      await folder.comeBack();
    }
  };
  const overrides: Partial<ObjectStore> = {
    readCell: (key) => whileAway(() => driver.readCell(key)),
    stat: (key) => whileAway(() => driver.stat(key)),
    read: async function* (key, options) {
      yield* await whileAway(() => collect(driver.read(key, options)));
    },
  };
  return new GuardedStore(
    new Proxy(driver, {
      get: (target, name) => {
        const value: unknown = Reflect.get(name === method ? overrides : target, name);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    }),
    id,
  );
}

test("nothing counts as absent in a store that has just come back", async () => {
  expect((await (await awayDuring("readCell")).readCell("a/metadata.json"))?.body).toBeDefined();
  expect(await (await awayDuring("stat")).stat("a/blob")).toMatchObject({ sizeBytes: 7 });
  expect((await readAll(await awayDuring("read"), "a/blob")).toString()).toBe("content");
});

test("a list during which the store was missing is invalid", async () => {
  const folder = await movedFolder();
  const store = await openStore(folder.path);
  for (const key of ["a/1", "b/2"]) await store.write(key, [bytes("content")]);
  const listed = store.listFolders("")[Symbol.asyncIterator]();
  await listed.next();
  await folder.vanish();
  await expect(store.stat("a/1")).rejects.toMatchObject(GONE);
  await folder.comeBack();
  await expect(collect({ [Symbol.asyncIterator]: () => listed })).rejects.toMatchObject({ code: "store_unavailable" });
});

test("another store in its place is unavailable too", async () => {
  const root = await temporaryFolder();
  const store = await openStore(root);
  await rm(join(root, ".store"), { recursive: true });
  await rm(join(root, "store.json"));
  await openStore(root);
  await expect(store.readCell("a.json")).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("Another store is at") as unknown,
  });
  await expect(store.swapCell("a.json", undefined, bytes("1"))).rejects.toMatchObject({ code: "store_unavailable" });
  expect(await readdir(root)).toEqual([".store", ".temporary", "store.json"]);
});

describe("opening", () => {
  async function place(): Promise<{ root: string; open: (options?: StoreOptions) => Promise<ObjectStore> }> {
    const folder = await temporaryFolder();
    const [root, known] = [join(folder, "store"), new KnownStores(join(folder, "data"))];
    return { root, open: async (options) => await openStore(root, { known, ...options }) };
  }
  const idAt = async (root: string): Promise<unknown> =>
    (JSON.parse(await readFile(join(root, "store.json"), "utf8")) as { id: unknown }).id;

  it("creates a store in an empty place once, with an id that never changes", async () => {
    const { root, open } = await place();
    await Promise.all([open(), open(), open()]);
    const id = await idAt(root);
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    await open();
    expect(await idAt(root)).toBe(id);
  });

  it("gives a store of an earlier release its marker, even if an empty one would be refused", async () => {
    const { root, open } = await place();
    await mkdir(join(root, "instances"), { recursive: true });
    await open({ mustExist: true });
    expect(await idAt(root)).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("refuses an empty place where a store must exist, and leaves nothing there", async () => {
    const { root, open } = await place();
    await expect(open({ mustExist: true })).rejects.toMatchObject({
      code: "store_unavailable",
      message: `There is no store at ${root}.`,
      hint: expect.stringContaining("mounted") as unknown,
    });
    // The folder that mkfs leaves in a new file system is none of ours.
    await mkdir(join(root, "lost+found"), { recursive: true });
    await expect(open({ mustExist: true })).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await readdir(root, { recursive: true })).toEqual(["lost+found"]);
  });

  it.each([
    ["empty", async () => {}],
    ["missing", (root: string) => rm(root, { recursive: true })],
    ["full of something else", (root: string) => mkdir(join(root, "instances"))],
  ])("refuses a place that has had a store and is %s now, with the next step", async (_, make) => {
    const { root, open } = await place();
    await open();
    const id = await idAt(root);
    await rm(root, { recursive: true });
    await mkdir(root);
    await make(root);
    const before = await readdir(root).catch(() => "missing");
    await expect(open()).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining(`The store ${String(id)} is not at ${root}`) as unknown,
      hint: expect.stringMatching(/Mount that store.*remove its entry from .*stores\.json/) as unknown,
    });
    expect(await readdir(root).catch(() => "missing")).toEqual(before);
  });

  it("refuses another store where one was, until its entry is removed", async () => {
    const { root, open } = await place();
    await open();
    await rm(root, { recursive: true });
    await openStore(root);
    const error = await open().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "store_unavailable", message: expect.stringContaining("Another store") });
    await writeFile(join(root, "../data/stores.json"), JSON.stringify({ format: 1, stores: {} }));
    await open();
  });

  it("continues with a store whose marker was restored by hand", async () => {
    const { root, open } = await place();
    await open();
    const id = await idAt(root);
    await rm(join(root, ".store"), { recursive: true });
    await rm(join(root, "store.json"));
    await expect(open()).rejects.toMatchObject({ hint: expect.stringContaining(`{"format":1,"id":"${String(id)}"}`) });
    await writeFile(join(root, "store.json"), JSON.stringify({ format: 1, id }));
    const store = await open();
    expect((await store.swapCell("a.json", undefined, bytes("1"))).outcome).toBe("written");
  });

  it("refuses a marker that it cannot read", async () => {
    const { root, open } = await place();
    await mkdir(root);
    for (const marker of ["", "{", '{"format":2,"id":"x"}', '{"format":1}']) {
      await writeFile(join(root, "store.json"), marker);
      await expect(open()).rejects.toMatchObject({
        code: "store_unavailable",
        message: expect.stringContaining("cannot be read") as unknown,
      });
    }
  });
});
