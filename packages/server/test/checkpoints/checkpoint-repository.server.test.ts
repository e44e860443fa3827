import { randomUUID } from "node:crypto";
import { readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { checkpointReferenceSchema } from "@sandboxer/protocol";
import { expect, it } from "vitest";
import { CheckpointRepository } from "../../src/checkpoints/checkpoint-repository.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { collect } from "../store/store-contract.ts";
import { smallVolume } from "../../../../test/kit/small-volume.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { contentsOf, REQUIREMENTS, savedState } from "./saved-states.ts";

const MIB = 1024 * 1024;

async function openRepository() {
  const root = await temporaryFolder();
  const store = await DirectoryStore.open(root);
  return { root, store, repository: new CheckpointRepository(store), id: randomUUID() };
}

it("loads the saved bytes unchanged, whatever the sizes", async () => {
  const { repository, id } = await openRepository();
  const state = await savedState({
    "checkpoint.img": 12_345,
    "pages.img": 9 * MIB + 3,
    "aligned.img": 2 * MIB,
    "exact-page": 4096,
    empty: 0,
    "folder/inner.bin": 1,
  });
  const phases: number[] = [];
  const saved = await repository.save(id, state, {
    wallMs: 1_790_000_000_123.7,
    parent: null,
    onProgress: ({ doneBytes }) => phases.push(doneBytes ?? 0),
  });
  checkpointReferenceSchema.parse(saved);
  expect(saved).toMatchObject({ name: "checkpoint_1790000000123.img", kind: "fake-state", parent: null });
  expect(phases.at(-1)).toBe(state.members.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0));
  const into = await temporaryFolder();
  const loaded = await repository.load(id, saved.name, into, { sha256: saved.sha256 });
  expect(loaded.kind).toBe("fake-state");
  expect(loaded.requirements).toEqual(REQUIREMENTS);
  expect(loaded.members.map(({ name }) => name)).toEqual(state.members.map(({ name }) => name));
  expect(loaded.members.every(({ path }) => path.startsWith(into))).toBe(true);
  expect(await contentsOf(loaded)).toEqual(await contentsOf(state));
  expect((await repository.list(id)).map(({ name }) => name)).toEqual([saved.name]);
});

it("uses the next millisecond if a name is taken, and never goes back in time", async () => {
  const { repository, id } = await openRepository();
  const state = await savedState({ a: 10 });
  const names = [];
  for (const wallMs of [5000, 5000, 3000])
    names.push((await repository.save(id, state, { wallMs, parent: null })).name);
  expect(names).toEqual(["checkpoint_5000.img", "checkpoint_5001.img", "checkpoint_5002.img"]);
});

it("gives two saves in the same millisecond different names", async () => {
  const { repository, id } = await openRepository();
  const state = await savedState({ a: 10 });
  const saved = await Promise.all(
    Array.from({ length: 6 }, async () => await repository.save(id, state, { wallMs: 5000, parent: null })),
  );
  expect(new Set(saved.map(({ name }) => name)).size).toBe(6);
  for (const { name, sha256 } of saved) await repository.load(id, name, await temporaryFolder(), { sha256 });
});

it("removes images that a rule does not keep, up to the published one", async () => {
  const { repository, id } = await openRepository();
  const state = await savedState({ a: 10 });
  for (let wallMs = 1; wallMs <= 6; wallMs++) await repository.save(id, state, { wallMs, parent: null });
  const removed = await repository.prune(id, "checkpoint_5.img", { keep_last: 2 });
  expect(removed).toEqual(["checkpoint_3.img", "checkpoint_2.img", "checkpoint_1.img"]);
  const names = (await repository.list(id)).map(({ name }) => name);
  expect(names).toEqual(["checkpoint_6.img", "checkpoint_5.img", "checkpoint_4.img"]);
});

it("reports the problem of a truncated image, and loads the previous one", async () => {
  const { repository, root, id } = await openRepository();
  const state = await savedState({ a: 10_000 });
  const good = await repository.save(id, state, { wallMs: 1, parent: null });
  const bad = await repository.save(id, state, { wallMs: 2, parent: good.name });
  await truncate(join(root, id, "checkpoints", bad.name), 5000);
  await expect(repository.load(id, bad.name, await temporaryFolder())).rejects.toMatchObject({
    code: "image_damaged",
    message: expect.stringMatching(/checkpoint_2\.img.*truncated at byte 5000/) as unknown,
  });
  await repository.load(id, good.name, await temporaryFolder());
});

it("refuses an image with another digest than the head's, a missing one, and invalid names", async () => {
  const { repository, id } = await openRepository();
  const saved = await repository.save(id, await savedState({ a: 10 }), { wallMs: 1, parent: null });
  const into = await temporaryFolder();
  await expect(repository.load(id, saved.name, into, { sha256: "0".repeat(64) })).rejects.toThrow("head names");
  await expect(repository.load(id, "checkpoint_9.img", into)).rejects.toThrow(/checkpoint_9\.img is not in the store/);
  await expect(repository.load(id, "../../x/checkpoint_1.img", into)).rejects.toMatchObject({ code: "bad_request" });
});

it("reads `latest` of a folder without a head", async () => {
  const { repository, root, id } = await openRepository();
  expect(await repository.latestName(id)).toBeUndefined();
  const state = await savedState({ a: 10 });
  const saved = await repository.save(id, state, { wallMs: 77, parent: null });
  await writeFile(join(root, id, "checkpoints", "latest"), saved.name);
  const name = await repository.latestName(id);
  expect(await contentsOf(await repository.load(id, name ?? "", await temporaryFolder()))).toEqual(
    await contentsOf(state),
  );
  await repository.writeLatest(id, "checkpoint_78.img");
  expect((await readFile(join(root, id, "checkpoints", "latest"), "utf8")).trim()).toBe("checkpoint_78.img");
  await writeFile(join(root, id, "checkpoints", "latest"), "../../etc/passwd");
  expect(await repository.latestName(id)).toBeUndefined();
});

it("leaves nothing when a save is cancelled or a member vanishes", async () => {
  const { repository, store, id } = await openRepository();
  const state = await savedState({ a: 4 * MIB });
  const controller = new AbortController();
  const onProgress = (): void => controller.abort(new Error("no longer wanted"));
  const options = { wallMs: 1, parent: null, signal: controller.signal, onProgress };
  await expect(repository.save(id, state, options)).rejects.toThrow("no longer wanted");
  const missing = { ...state, members: [...state.members, { name: "b", path: "/nowhere/b", sizeBytes: 1 }] };
  await expect(repository.save(id, missing, { wallMs: 1, parent: null })).rejects.toThrow();
  expect(await collect(store.list(""))).toEqual([]);
});

it("refuses member names that lead elsewhere", async () => {
  const { repository, id } = await openRepository();
  const state = await savedState({ a: 1 });
  for (const name of ["../a", "/a", "a/../b", "", ".hidden", "a//b"]) {
    const members = state.members.map((member) => ({ ...member, name }));
    await expect(repository.save(id, { ...state, members }, { wallMs: 1, parent: null })).rejects.toThrow("member");
  }
});

it("keeps the old checkpoint when the volume fills in the middle of a save", async (context) => {
  const volume = smallVolume(8 * MIB);
  if ("skipped" in volume) {
    console.log(`skipped: ${volume.skipped}`);
    return context.skip(volume.skipped);
  }
  try {
    const repository = new CheckpointRepository(await DirectoryStore.open(volume.folder));
    const id = randomUUID();
    const old = await repository.save(id, await savedState({ a: 2 * MIB }), { wallMs: 1, parent: null });
    const large = await savedState({ a: 10 * MIB });
    await expect(repository.save(id, large, { wallMs: 2, parent: old.name })).rejects.toMatchObject({
      code: "no_space",
    });
    expect((await repository.list(id)).map(({ name }) => name)).toEqual([old.name]);
    await repository.load(id, old.name, await temporaryFolder(), { sha256: old.sha256 });
  } finally {
    volume.remove();
  }
});

it("removes all images of a sandbox and keeps its head", async () => {
  const { repository, store, id } = await openRepository();
  await store.swapCell(`${id}/metadata.json`, undefined, Buffer.from("{}"));
  await repository.save(id, await savedState({ a: 1 }), { wallMs: 1, parent: null });
  await repository.removeAll(id);
  expect((await collect(store.list(id))).map(({ key }) => key)).toEqual([`${id}/metadata.json`]);
});
