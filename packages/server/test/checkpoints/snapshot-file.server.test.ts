import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import type { SnapshotPayload } from "../../src/backends/backend.ts";
import { SnapshotFile, SnapshotMirror } from "../../src/checkpoints/snapshot-file.ts";
import { announcement } from "../../src/checkpoints/snapshot-save.ts";
import { SnapshotRepository } from "../../src/checkpoints/snapshot-repository.ts";
import { openStore } from "../../src/store/open-store.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { newSnapshot } from "./snapshot-samples.ts";

const STATE: SnapshotPayload = {
  kind: "stub-metadata",
  members: [],
  requirements: { extension: "saas-stub", record: { endpoint: "https://example.test/1" } },
};
const NOTHING_DEPENDS = async (): Promise<void> => {};

async function openLocal() {
  const data = join(await temporaryFolder(), "data");
  const path = join(data, "snapshots.json");
  const store = await openStore(join(data, "registry"));
  const mirror = new SnapshotMirror(new SnapshotFile(path), (error) => {
    throw error;
  });
  const publisher = (): string => "this-server";
  const library = new SnapshotRepository(store, { publisher, keepsBytes: false, onChange: mirror.put });
  return { path, library };
}

async function save(library: SnapshotRepository, name: string | null = null, replaceName = false) {
  return await library.save(newSnapshot({ name }), async () => ({ state: STATE }), { replaceName });
}

describe("snapshots without a store", () => {
  it("are records, shown in one file: saved, named, loaded, removed", async () => {
    const { path, library } = await openLocal();
    expect(await library.list()).toEqual([]);
    const { snapshot } = await save(library, "base");
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({
      format: 1,
      snapshots: [{ format: 1, id: snapshot.id, name: "base", state: "ready", kind: "stub-metadata" }],
    });
    expect(await library.load(snapshot.id, await temporaryFolder())).toMatchObject(STATE);
    expect(snapshot.details).toMatchObject({ endpoint: "https://example.test/1" });
    await expect(save(library, "base")).rejects.toMatchObject({ code: "name_taken" });
    const second = await save(library, "base", true);
    expect(second.replacedId).toBe(snapshot.id);
    expect((await library.get("base"))?.id).toBe(second.snapshot.id);
    expect(await library.amend(snapshot.id, { name: "old", labels: { a: "b" } })).toMatchObject({ name: "old" });
    await library.remove(second.snapshot.id, NOTHING_DEPENDS);
    expect(await library.get("base")).toBeUndefined();
    expect((await library.list()).map(({ id }) => id)).toEqual([snapshot.id]);
  });

  it("store no bytes, and report what is missing for that", async () => {
    const { library } = await openLocal();
    const state = { ...STATE, members: [{ name: "a", path: "/nowhere", sizeBytes: 1 }] };
    const saving = library.save(newSnapshot(), async () => ({ state }), { replaceName: false });
    await expect(saving).rejects.toMatchObject({
      code: "checkpoint_disabled",
      hint: expect.stringContaining("--store"),
    });
    expect(await library.list()).toEqual([]);
  });
});

describe("the file", () => {
  const openFile = async () => {
    const path = join(await temporaryFolder(), "data", "snapshots.json");
    return { path, file: new SnapshotFile(path) };
  };
  const sample = () => announcement(newSnapshot(), "this-server");

  it("keeps unknown fields and entries", async () => {
    const { path, file } = await openFile();
    const record = sample();
    await file.put(record.id, record);
    const content = JSON.parse(await readFile(path, "utf8")) as { snapshots: object[] };
    const later = { id: "of a later release", format: 7, what: [1, 2] };
    await writeFile(path, JSON.stringify({ ...content, note: "kept", snapshots: [...content.snapshots, later] }));
    await file.change((present) => present.map((each) => ({ ...each, labels: { a: "b" } })));
    const after = JSON.parse(await readFile(path, "utf8")) as { note: string; snapshots: object[] };
    expect(after.note).toBe("kept");
    expect(after.snapshots).toContainEqual(later);
    expect(after.snapshots).toContainEqual(expect.objectContaining({ id: record.id, labels: { a: "b" } }));
    expect(await file.read()).toHaveLength(1);
  });

  it.each(["{", '{"format":2,"snapshots":[]}', "[]"])("is left alone when it cannot be read: %s", async (text) => {
    const { path, file } = await openFile();
    const record = sample();
    await file.put(record.id, record);
    await writeFile(path, text);
    await expect(file.read()).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(file.put(record.id, record)).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await readFile(path, "utf8")).toBe(text);
  });

  it("accepts changes of several processes at once, and loses none", async () => {
    const { path, file } = await openFile();
    const script = `
      const { SnapshotFile } = await import(${JSON.stringify(import.meta.resolve("../../src/checkpoints/snapshot-file.ts"))});
      const { announcement } = await import(${JSON.stringify(import.meta.resolve("../../src/checkpoints/snapshot-save.ts"))});
      const { newSnapshot } = await import(${JSON.stringify(import.meta.resolve("./snapshot-samples.ts"))});
      const file = new SnapshotFile(process.argv[1]);
      await Promise.all(Array.from({ length: 10 }, () => {
        const record = announcement(newSnapshot(), "");
        return file.put(record.id, record);
      }));`;
    const run = promisify(execFile);
    await Promise.all(
      [1, 2, 3].map(async () => await run(process.execPath, ["--input-type=module", "-e", script, path])),
    );
    expect(await file.read()).toHaveLength(30);
    expect((await readdir(join(path, ".."))).toSorted()).toEqual(["snapshots.json", "snapshots.json.lock"]);
  });
});
