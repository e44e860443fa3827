import { randomBytes, randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AmbiguousWriteError, ObjectNotFoundError, type ObjectStore, type SwapOutcome } from "../../src/store/store.ts";

export interface OpenedStore {
  readonly store: ObjectStore;
  readonly close: () => Promise<void>;
}

/** The contract of every driver. `open` returns an empty store. */
export function testStore(name: string, open: () => Promise<OpenedStore>): void {
  describe(`store contract: ${name}`, () => {
    let opened: OpenedStore;
    let store: ObjectStore;
    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(async () => await opened.close());

    describe("cells", () => {
      it("are absent until created, and are created once", async () => {
        expect(await store.readCell("a/metadata.json")).toBeUndefined();
        const first = await store.swapCell("a/metadata.json", undefined, bytes("1"));
        expect(first.outcome).toBe("written");
        expect((await store.swapCell("a/metadata.json", undefined, bytes("2"))).outcome).toBe("conflict");
        expect(await textOf(store, "a/metadata.json")).toBe("1");
      });

      it("are replaced at their present version only", async () => {
        const versions = [await written(store, "a/metadata.json", undefined, "0")];
        for (let number = 1; number <= 40; number++) {
          versions.push(await written(store, "a/metadata.json", versions.at(-1), `${number}`));
        }
        expect(new Set(versions).size).toBe(versions.length);
        expect((await store.readCell("a/metadata.json"))?.version).toBe(versions.at(-1));
        for (const stale of [undefined, "", "nonsense", versions[0], versions[20], versions.at(-2)]) {
          expect((await store.swapCell("a/metadata.json", stale, bytes("stale"))).outcome).toBe("conflict");
        }
        expect(await textOf(store, "a/metadata.json")).toBe("40");
      });

      it("refuse a version when the cell is absent", async () => {
        const version = await written(store, "a/metadata.json", undefined, "1");
        expect((await store.swapCell("b/metadata.json", version, bytes("x"))).outcome).toBe("conflict");
        expect(await store.readCell("b/metadata.json")).toBeUndefined();
      });

      it("distinguish versions with the same body", async () => {
        const first = await written(store, "c.json", undefined, "A");
        const second = await written(store, "c.json", first, "B");
        await written(store, "c.json", second, "A");
        expect((await store.swapCell("c.json", first, bytes("late"))).outcome).toBe("conflict");
      });

      it("have one winner among many that create", async () => {
        for (let round = 0; round < 5; round++) {
          const key = `race-${round}/metadata.json`;
          const results = await Promise.all(
            Array.from({ length: 32 }, async (_, racer) => await settled(store, key, undefined, `${racer}`)),
          );
          const winners = results.flatMap((result, racer) => (result.outcome === "written" ? [racer] : []));
          expect(winners).toHaveLength(1);
          expect(await textOf(store, key)).toBe(`${winners[0]}`);
        }
      });

      it("lose no increment of many that count", async () => {
        await written(store, "counter.json", undefined, "0");
        // 48 rounds in which all eight want the same version: a store that let two through would do so in the first of them.
        const increments = 6;
        const count = async (_: unknown, racer: number): Promise<void> => {
          for (let done = 0; done < increments;) {
            const cell = await store.readCell("counter.json");
            const next = Number.parseInt(Buffer.from(cell?.body ?? []).toString()) + 1;
            const result = await settled(store, "counter.json", cell?.version, `${next} by ${racer}`);
            if (result.outcome === "written") done++;
          }
        };
        await Promise.all(Array.from({ length: 8 }, count));
        expect(Number.parseInt(await textOf(store, "counter.json"))).toBe(8 * increments);
      });

      it("are removed completely, and can be created again", async () => {
        const versions = [await written(store, "a/one.json", undefined, "1")];
        versions.push(await written(store, "a/one.json", versions[0], "2"));
        await written(store, "a/two.json", undefined, "kept");
        await store.deleteCell("a/one.json");
        await store.deleteCell("a/one.json");
        expect(await store.readCell("a/one.json")).toBeUndefined();
        expect(await collect(store.listCells("a"))).toEqual(["a/two.json"]);
        for (const stale of versions) {
          expect((await store.swapCell("a/one.json", stale, bytes("stale"))).outcome).toBe("conflict");
        }
        expect(await store.readCell("a/one.json")).toBeUndefined();
        await written(store, "a/one.json", undefined, "3");
        expect(await textOf(store, "a/one.json")).toBe("3");
      });

      it("are listed by folder", async () => {
        const names = [randomUUID(), randomUUID()];
        for (const name of names) await written(store, `instances/${name}.json`, undefined, "{}");
        await written(store, "elsewhere/metadata.json", undefined, "{}");
        const listed = await collect(store.listCells("instances"));
        expect(listed.toSorted()).toEqual(names.map((name) => `instances/${name}.json`).toSorted());
        expect(await collect(store.listCells("elsewhere"))).toEqual(["elsewhere/metadata.json"]);
        expect(await collect(store.listCells("missing"))).toEqual([]);
      });
    });

    it("cells have a mark that changes with each version, and only then", async () => {
      const markOf = async (): Promise<string | undefined> => {
        const listed = await collect(store.listMarks("instances"));
        return listed.find(({ key }) => key === "instances/watched.json")?.mark;
      };
      let version = await written(store, "instances/watched.json", undefined, "same");
      await written(store, "instances/other.json", undefined, "{}");
      const marks = new Set([await markOf()]);
      expect(await markOf()).toBe([...marks][0]);
      for (let round = 1; round <= 4; round++) {
        version = await written(store, "instances/watched.json", version, "same");
        marks.add(await markOf());
        expect(marks.size).toBe(round + 1);
      }
      await written(store, "instances/watched.json", version, "another length");
      expect((await collect(store.listMarks("instances"))).every(({ sizeBytes }) => sizeBytes > 0)).toBe(true);
    });

    describe("blobs", () => {
      it("are read back unchanged, completely and in ranges", async () => {
        const content = randomBytes(3 * 1024 * 1024 + 17);
        const result = await store.write("a/blob", pieces(content, 700_001));
        expect(result).toEqual({ outcome: "written", sizeBytes: content.byteLength });
        expect(await store.stat("a/blob")).toEqual({ sizeBytes: content.byteLength });
        expect((await readAll(store, "a/blob")).equals(content)).toBe(true);
        for (const [start, end] of [
          [0, 1],
          [5, 5],
          [1_048_570, 1_048_590],
          [3_000_000, 9_000_000],
          [9_000_000, 9_000_001],
        ]) {
          const got = await readAll(store, "a/blob", { start: start ?? 0, end: end ?? 0 });
          expect(got.equals(content.subarray(start, end))).toBe(true);
        }
      });

      it("are the consumer's to keep, unless it allows their memory to be used again", async () => {
        const content = randomBytes(5 * 1024 * 1024 + 5);
        await store.write("blob", [content]);
        const kept = await collect(store.read("blob"));
        expect(Buffer.concat(kept).equals(content)).toBe(true);
        // Each chunk is looked at one chunk late.
        const late: Uint8Array[] = [];
        let previous: Uint8Array = new Uint8Array();
        for await (const chunk of store.read("blob", { reuseMemory: true })) {
          late.push(Buffer.from(previous));
          previous = chunk;
        }
        expect(Buffer.concat([...late, previous]).equals(content)).toBe(true);
      });

      it("may reuse the memory of a chunk once the next is requested", async () => {
        const memory = Buffer.alloc(100_000);
        async function* reusing(): AsyncGenerator<Uint8Array> {
          for (let value = 0; value < 20; value++) yield memory.fill(value);
        }
        await store.write("blob", reusing());
        const content = await readAll(store, "blob");
        for (let value = 0; value < 20; value++) expect(content[value * 100_000 + 50_000]).toBe(value);
      });

      it("are replaced, or kept with ifAbsent", async () => {
        await store.write("blob", [bytes("one")]);
        expect(await store.write("blob", [bytes("two")], { ifAbsent: true })).toEqual({ outcome: "conflict" });
        expect((await readAll(store, "blob")).toString()).toBe("one");
        await store.writeText("blob", "three");
        expect((await readAll(store, "blob")).toString()).toBe("three");
      });

      it("leave nothing if the producer fails or the signal aborts", async () => {
        async function* failing(): AsyncGenerator<Uint8Array> {
          yield bytes("some");
          throw new Error("the producer failed");
        }
        await expect(store.write("blob", failing())).rejects.toThrow("the producer failed");
        const controller = new AbortController();
        async function* aborting(): AsyncGenerator<Uint8Array> {
          yield bytes("some");
          controller.abort(new Error("no longer wanted"));
          yield bytes("more");
        }
        await expect(store.write("blob", aborting(), { signal: controller.signal })).rejects.toThrow(
          "no longer wanted",
        );
        expect(await store.stat("blob")).toBeUndefined();
        expect(await collect(store.list(""))).toEqual([]);
      });

      it("that are missing are named", async () => {
        expect(await store.stat("a/missing")).toBeUndefined();
        await expect(readAll(store, "a/missing")).rejects.toBeInstanceOf(ObjectNotFoundError);
        await store.delete("a/missing");
      });

      it("are listed at any depth, and go with their folder", async () => {
        await store.writeText("x/one", "1");
        await store.writeText("x/deep/er/two", "22");
        await store.writeText("y/three", "333");
        await written(store, "x/metadata.json", undefined, "{}");
        const listed = (await collect(store.list("x"))).toSorted((one, two) => one.key.localeCompare(two.key));
        expect(listed.map(({ key }) => key)).toEqual(["x/deep/er/two", "x/metadata.json", "x/one"]);
        expect([listed[0]?.sizeBytes, listed[2]?.sizeBytes]).toEqual([2, 1]);
        expect(listed[1]?.sizeBytes).toBeGreaterThanOrEqual(2);
        expect((await collect(store.listFolders(""))).toSorted()).toEqual(["x", "y"]);
        expect(await collect(store.listFolders("x"))).toEqual(["deep"]);
        await store.delete("x/one");
        expect(await store.stat("x/one")).toBeUndefined();
        await store.deleteTree("x");
        await store.deleteTree("x");
        expect(await store.readCell("x/metadata.json")).toBeUndefined();
        expect((await collect(store.list(""))).map(({ key }) => key)).toEqual(["y/three"]);
      });
    });

    it.each([
      "",
      "/etc/passwd",
      "../x",
      "a/../b",
      "a//b",
      "a/",
      ".hidden",
      "a/.head",
      "a\\b",
      "a\0b",
      "a b",
      "ü",
      "x".repeat(256),
    ])("refuses the key %j", async (key) => {
      const refused = { code: "bad_request" };
      await expect(store.readCell(key)).rejects.toMatchObject(refused);
      await expect(store.swapCell(key, undefined, bytes("x"))).rejects.toMatchObject(refused);
      await expect(readAll(store, key)).rejects.toMatchObject(refused);
      await expect(store.write(key, [bytes("x")])).rejects.toMatchObject(refused);
      await expect(store.stat(key)).rejects.toMatchObject(refused);
      await expect(store.deleteCell(key)).rejects.toMatchObject(refused);
      await expect(store.delete(key)).rejects.toMatchObject(refused);
      await expect(store.deleteTree(key)).rejects.toMatchObject(refused);
    });

    it("passes its own probe and leaves nothing of it", async () => {
      await store.probe();
      expect(await collect(store.list(""))).toEqual([]);
      expect(await collect(store.listFolders(""))).toEqual([]);
    });
  });
}

export function bytes(text: string): Uint8Array {
  return Buffer.from(text);
}

export async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
}

export async function readAll(
  store: ObjectStore,
  key: string,
  range: { start?: number; end?: number } = {},
): Promise<Buffer> {
  return Buffer.concat(await collect(store.read(key, range)));
}

async function written(store: ObjectStore, key: string, expected: string | undefined, text: string): Promise<string> {
  const result = await store.swapCell(key, expected, bytes(text));
  if (result.outcome !== "written") throw new Error(`${key} was not written`);
  return result.version;
}

/** A swap among many whose bodies differ. Some stores do not tell every loser that it has lost. */
async function settled(
  store: ObjectStore,
  key: string,
  expected: string | undefined,
  text: string,
): Promise<SwapOutcome> {
  try {
    return await store.swapCell(key, expected, bytes(text));
  } catch (error) {
    if (!(error instanceof AmbiguousWriteError)) throw error;
    const cell = await store.readCell(key);
    const ours = cell !== undefined && Buffer.from(cell.body).toString() === text;
    return ours ? { outcome: "written", version: cell.version } : { outcome: "conflict" };
  }
}

async function textOf(store: ObjectStore, key: string): Promise<string> {
  return Buffer.from((await store.readCell(key))?.body ?? []).toString();
}

async function* pieces(content: Uint8Array, pieceBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.byteLength; at += pieceBytes) yield content.subarray(at, at + pieceBytes);
}
