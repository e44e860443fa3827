import { randomUUID } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Head } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { SandboxIndexFile } from "../../src/lease/sandbox-index-file.ts";
import { SandboxIndex } from "../../src/lease/sandbox-index.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { instance } from "./test-instances.ts";
import { newSandbox } from "./samples.ts";

class CountedStore {
  readonly folder: string;
  readonly store: ObjectStore;
  readonly #head: Head;
  reads: string[] = [];
  /** Called before the names of sandboxes are given. */
  beforeNames: () => Promise<void> = async () => {};

  private constructor(folder: string, real: ObjectStore, head: Head) {
    this.folder = folder;
    this.#head = head;
    this.store = new Proxy(real, {
      get: (target, name) => {
        if (name === "readCell")
          return (key: string) => {
            if (key.endsWith("/metadata.json")) this.reads.push(key.slice(0, -"/metadata.json".length));
            return target.readCell(key);
          };
        if (name === "listFolders")
          return async function* (this: CountedStore, folderName: string) {
            const names = await Array.fromAsync(target.listFolders(folderName));
            await this.beforeNames();
            yield* names;
          }.bind(this);
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  }

  static async open(): Promise<CountedStore> {
    const folder = await temporaryFolder();
    const real = await DirectoryStore.open(folder);
    const sample = randomUUID();
    const head = await (await instance(real)).create(sample, newSandbox());
    await real.deleteTree(sample);
    return new CountedStore(folder, real, { ...head, owner: null, state: "parked" });
  }

  async put(number: number, changes: Partial<Head> = {}): Promise<string> {
    const sandboxId = randomUUID();
    const head = { ...this.#head, createdAt: timeOf(number), nonce: randomUUID(), ...changes };
    await this.store.swapCell(`${sandboxId}/metadata.json`, undefined, Buffer.from(JSON.stringify(head)));
    return sandboxId;
  }

  takeReads(): string[] {
    return this.reads.splice(0);
  }
}

function timeOf(number: number): string {
  return new Date(Date.UTC(2030, 0, 1) + number * 1000).toISOString();
}

async function idsOf(index: SandboxIndex): Promise<string[]> {
  return (await index.look()).sorted.map(({ sandboxId }) => sandboxId);
}

test("each head is read once, new ones are found, and removed ones are dropped", async () => {
  const stored = await CountedStore.open();
  const [one, three, two] = [await stored.put(1), await stored.put(3), await stored.put(2)];
  const index = new SandboxIndex(stored.store);
  expect(await idsOf(index)).toEqual([three, two, one]);
  expect(stored.takeReads()).toHaveLength(3);
  const four = await stored.put(4);
  expect(await idsOf(index)).toEqual([four, three, two, one]);
  expect(stored.takeReads()).toEqual([four]);
  await stored.store.deleteTree(three);
  expect(await idsOf(index)).toEqual([four, two, one]);
  expect(stored.takeReads()).toEqual([]);
});

test("a look during another look sees everything that was stored before it was requested", async () => {
  const stored = await CountedStore.open();
  const index = new SandboxIndex(stored.store);
  const first = await stored.put(1);
  const named = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  stored.beforeNames = () => (named.resolve(), goOn.promise);
  const early = idsOf(index);
  await named.promise;
  const second = await stored.put(2);
  const late = [idsOf(index), idsOf(index)];
  goOn.resolve();
  expect(await early).toEqual([first]);
  expect(await Promise.all(late)).toEqual([
    [second, first],
    [second, first],
  ]);
});

test("a folder without a readable head is looked at each time until it has one", async () => {
  const stored = await CountedStore.open();
  const broken = await stored.put(1);
  const versions = join(stored.folder, broken, ".head");
  const [version = ""] = await readdir(versions);
  const whole = await readFile(join(versions, version));
  await writeFile(join(versions, version), whole.subarray(0, whole.length - 30));
  const index = new SandboxIndex(stored.store);
  const { sorted, others } = await index.look();
  expect([sorted, others.map(({ sandboxId, error }) => [sandboxId, error?.code])]).toEqual([
    [],
    [[broken, "image_damaged"]],
  ]);
  await writeFile(join(versions, version), whole);
  expect(await idsOf(index)).toEqual([broken]);
});

test("a stored index saves the reads of the next start, except for deleted and new sandboxes", async () => {
  const stored = await CountedStore.open();
  const folder = join(await temporaryFolder(), "kept");
  const file = (): SandboxIndexFile => new SandboxIndexFile(folder, "store A");
  const open = (): SandboxIndex => new SandboxIndex(stored.store, file(), 20);
  for (let number = 0; number < 18; number++) await stored.put(number);
  const promised = await stored.put(18, { about: { restart: "always" } as Head["about"] });
  const destroyed = await stored.put(2000, { state: "deleted" });
  const before = await idsOf(open());
  expect(stored.takeReads()).toHaveLength(20);
  const later = await stored.put(3000, { about: { key: "k" } as Head["about"] });
  const index = open();
  expect(await idsOf(index)).toEqual([later, ...before]);
  expect(stored.takeReads().toSorted()).toEqual([destroyed, later].toSorted());
  expect([index.isDestroyed(destroyed), index.isDestroyed(later)]).toEqual([true, false]);
  const { sorted } = await index.look();
  expect(sorted[0]).toMatchObject({ key: "k", backend: "fake", restarts: false });
  expect(sorted.filter(({ restarts }) => restarts).map(({ sandboxId }) => sandboxId)).toEqual([promised]);
  // The index of another store, or a damaged file, is ignored.
  const [name = ""] = await readdir(folder);
  const other = new SandboxIndexFile(folder, "store B");
  await expect(other.read()).rejects.toThrow("ENOENT");
  await writeFile(join(folder, name), `${await readFile(join(folder, name), "utf8")}["no id",1]\n`);
  expect(await idsOf(open())).toHaveLength(21);
  expect(stored.takeReads()).toHaveLength(21);
  await rm(folder, { recursive: true });
});

test("a server that ends does not wait for a look", async () => {
  const stored = await CountedStore.open();
  await stored.put(1);
  const index = new SandboxIndex(stored.store);
  index.close();
  await expect(index.look()).rejects.toMatchObject({ code: "draining" });
});
