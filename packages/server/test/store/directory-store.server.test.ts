import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { DirectoryCells } from "../../src/store/directory/directory-cells.ts";
import { TemporaryFiles } from "../../src/store/directory/temporary-files.ts";
import { NO_VERSION, VersionFiles } from "../../src/store/directory/version-files.ts";
import { openStore } from "../../src/store/open-store.ts";
import { AmbiguousWriteError } from "../../src/store/store.ts";
import { bytes, testStore } from "./store-contract.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

for (const [name, open] of [
  ["directory", (root: string) => DirectoryStore.open(root)],
  ["directory, with a look at its marker", openStore],
] as const) {
  testStore(name, async () => {
    const folder = await mkdtemp(join(tmpdir(), "sandboxer-test-"));
    return {
      store: await open(folder),
      close: async () => await rm(folder, { recursive: true, force: true }),
    };
  });
}

async function swapTimes(store: DirectoryStore, key: string, times: number): Promise<void> {
  for (let number = 1; number <= times; number++) {
    const version = (await store.readCell(key))?.version;
    const result = await store.swapCell(key, version, bytes(`{"number":${number}}`));
    expect(result.outcome).toBe("written");
  }
}

it.each(["before the answer", "behind the answer"] as const)(
  "gives nobody but its owner access, even to a store of an older release; written %s",
  async (syncs) => {
    const root = await temporaryFolder();
    const store = await DirectoryStore.open(join(root, "new/store"), { syncs });
    await swapTimes(store, "sandbox/metadata.json", 2);
    await swapTimes(store, "instances/one.json", 1);
    await store.write("packs/one", [bytes("content")]);
    const names = await readdir(join(root, "new"), { recursive: true });
    const opened = await Promise.all(
      ["", ...names].map(async (name) => ({ name, others: (await stat(join(root, "new", name))).mode & 0o077 })),
    );
    expect(opened.length).toBeGreaterThan(8);
    expect(opened.filter(({ others }) => others !== 0)).toEqual([]);
    await chmod(join(root, "new/store"), 0o755);
    await DirectoryStore.open(join(root, "new/store"));
    expect((await stat(join(root, "new/store"))).mode & 0o777).toBe(0o700);
  },
);

it("keeps the newest versions of a head and shows the newest in metadata.json", async () => {
  const root = await temporaryFolder();
  const store = await DirectoryStore.open(root);
  await swapTimes(store, "sandbox/metadata.json", 40);
  const versions = (await readdir(join(root, "sandbox/.head"))).toSorted();
  expect(versions).toHaveLength(16);
  expect(versions.at(-1)).toBe("v0000000000000040");
  expect(await readFile(join(root, "sandbox/metadata.json"), "utf8")).toBe('{"number":40}');
  await swapTimes(store, "instances/one.json", 2);
  expect(await readdir(join(root, "instances/.one"))).toHaveLength(2);
  expect(await readFile(join(root, "instances/one.json"), "utf8")).toBe('{"number":2}');
});

it("reads the newest version, whatever the view contains, and repairs the view", async () => {
  const root = await temporaryFolder();
  const store = await DirectoryStore.open(root);
  await swapTimes(store, "sandbox/metadata.json", 2);
  await writeFile(join(root, "sandbox/metadata.json"), "scribble");
  const cell = await store.readCell("sandbox/metadata.json");
  expect(Buffer.from(cell?.body ?? []).toString()).toBe('{"number":2}');
  await store.swapCell("sandbox/metadata.json", cell?.version, bytes("next"));
  expect(await readFile(join(root, "sandbox/metadata.json"), "utf8")).toBe("next");
});

it("does not leave an older view behind when a slow writer is overtaken", async () => {
  const root = await temporaryFolder();
  const fast = await DirectoryStore.open(root);
  await swapTimes(fast, "sandbox/metadata.json", 1);
  const temporary = new TemporaryFiles(root);
  const slow = new DirectoryCells(root, temporary);
  const pathOf = temporary.path.bind(temporary);
  let overtaken = false;
  // Its head has moved, its view was not written yet, and others continue.
  temporary.path = async () => {
    if (!overtaken) await swapTimes(fast, "sandbox/metadata.json", 3);
    overtaken = true;
    return await pathOf();
  };
  const version = (await slow.read("sandbox/metadata.json"))?.version;
  expect((await slow.swap("sandbox/metadata.json", version, bytes("slow"))).outcome).toBe("written");
  expect(await readFile(join(root, "sandbox/metadata.json"), "utf8")).toBe('{"number":3}');
});

it("reads a plain file without versions as the cell", async () => {
  const root = await temporaryFolder();
  await mkdir(join(root, "imported"));
  await writeFile(join(root, "imported/metadata.json"), '{"status":"checkpointed"}');
  const store = await DirectoryStore.open(root);
  const cell = await store.readCell("imported/metadata.json");
  expect(Buffer.from(cell?.body ?? []).toString()).toBe('{"status":"checkpointed"}');
  expect((await store.swapCell("imported/metadata.json", undefined, bytes("x"))).outcome).toBe("conflict");
  expect((await store.swapCell("imported/metadata.json", cell?.version, bytes("head"))).outcome).toBe("written");
  expect((await store.swapCell("imported/metadata.json", cell?.version, bytes("again"))).outcome).toBe("conflict");
});

/** A writer that looked, found itself current, and was stopped before it linked while others wrote `times` versions. */
async function appendLate(root: string, store: DirectoryStore, times: number): Promise<unknown> {
  const late = new VersionFiles(join(root, "sandbox/.head"));
  const base = await late.newest();
  const look = late.newest.bind(late);
  late.newest = async () => {
    const seen = await look();
    await swapTimes(store, "sandbox/metadata.json", times);
    return seen;
  };
  return await late.append(base ?? NO_VERSION, bytes("late"));
}

it("recognises that it recreated a removed version", async () => {
  const root = await temporaryFolder();
  const store = await DirectoryStore.open(root);
  await swapTimes(store, "sandbox/metadata.json", 1);
  // Version 2 was removed; version 3 exists, and names another parent.
  expect(await appendLate(root, store, 17)).toBeUndefined();
  expect(Buffer.from((await store.readCell("sandbox/metadata.json"))?.body ?? []).toString()).toBe('{"number":17}');
  // Here the version after its own was removed too: it cannot know.
  await expect(appendLate(root, store, 18)).rejects.toBeInstanceOf(AmbiguousWriteError);
  expect(Buffer.from((await store.readCell("sandbox/metadata.json"))?.body ?? []).toString()).toBe('{"number":18}');
});

it("removes half-written files of dead processes of this machine, and nothing else", async () => {
  const root = await temporaryFolder();
  await DirectoryStore.open(root);
  const folder = join(root, ".temporary");
  await mkdir(folder, { recursive: true });
  const host = hostname().replaceAll(/[^A-Za-z0-9.-]/g, "_");
  const abandoned = `${host}+another-boot+1+1+x`;
  const foreign = "another-host+another-boot+1+1+x";
  for (const name of [abandoned, foreign]) await writeFile(join(folder, name), "half");
  await DirectoryStore.open(root);
  expect(await readdir(folder)).toEqual([foreign]);
});

it("continues after its temporary files were removed", async () => {
  const root = await temporaryFolder();
  const store = await DirectoryStore.open(root);
  await store.write("a/blob", [bytes("one")]);
  await rm(join(root, ".temporary"), { recursive: true });
  await expect(store.write("a/blob", [bytes("two")])).rejects.toMatchObject({ code: "store_unavailable" });
  expect((await store.write("b/blob", [bytes("two")])).outcome).toBe("written");
  await rm(join(root, ".temporary"), { recursive: true });
  await swapTimes(store, "sandbox/metadata.json", 2);
  expect(await readFile(join(root, "sandbox/metadata.json"), "utf8")).toBe('{"number":2}');
  await rm(join(root, ".temporary"), { recursive: true });
  await store.deleteCell("sandbox/metadata.json");
  expect(await store.readCell("sandbox/metadata.json")).toBeUndefined();
});

it("opens paths and file: URLs, and names addresses that it cannot open", async () => {
  const root = await temporaryFolder();
  expect((await openStore(join(root, "a"))).address).toBe(join(root, "a"));
  expect((await openStore(`file://${root}/b`)).address).toBe(join(root, "b"));
  await expect(openStore("ftp://host/")).rejects.toMatchObject({ code: "bad_request" });
  await expect(openStore("")).rejects.toMatchObject({ code: "bad_request" });
  await writeFile(join(root, "file"), "");
  await expect(openStore(join(root, "file"))).rejects.toMatchObject({ code: "store_unavailable" });
});
