import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { SnapshotRepository } from "../../src/checkpoints/snapshot-repository.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { FaultyStore } from "../lease/faulty-store.ts";
import { collect } from "../store/store-contract.ts";
import { temporaryFolder } from "../store/temporary-folder.ts";
import { contentsOf, savedState } from "./saved-states.ts";

async function openRepository() {
  const store = await DirectoryStore.open(await temporaryFolder());
  return { store, repository: new SnapshotRepository(store), options: { wallMs: 1000, sandboxId: randomUUID() } };
}

it("saves, lists and loads by name; the newest wins and the old image goes", async () => {
  const { store, repository, options } = await openRepository();
  const [first, second] = [await savedState({ a: 100 }), await savedState({ a: 200 })];
  await repository.save("base-1.0", first, options);
  await repository.save("base-1.0", second, { ...options, wallMs: 2000 });
  await repository.save("another", first, options);
  expect((await repository.list()).map(({ name }) => name)).toEqual(["another", "base-1.0"]);
  expect(await repository.get("base-1.0")).toMatchObject({
    created_at: new Date(2000).toISOString(),
    kind: "fake-state",
  });
  expect(await contentsOf(await repository.load("base-1.0", await temporaryFolder()))).toEqual(
    await contentsOf(second),
  );
  const images = (await collect(store.list("filesystem-snapshots/base-1.0"))).filter(({ key }) => key.endsWith(".img"));
  expect(images).toHaveLength(1);
});

it("is whole whoever saves at the same time", async () => {
  const { repository, options } = await openRepository();
  const states = await Promise.all([100, 200, 300, 400].map(async (sizeBytes) => await savedState({ a: sizeBytes })));
  await Promise.all(states.map(async (state) => await repository.save("busy", state, options)));
  const loaded = await contentsOf(await repository.load("busy", await temporaryFolder()));
  expect(await Promise.all(states.map(contentsOf))).toContainEqual(loaded);
});

it.each(["lost_request", "lost_reply", "late"] as const)("stays whole after a %s", async (fault) => {
  const { store: inner, options } = await openRepository();
  const faulty = new FaultyStore(inner);
  const repository = new SnapshotRepository(faulty.store);
  await repository.save("name", await savedState({ a: 100 }), options);
  const state = await savedState({ a: 200 });
  faulty.faults.push(fault);
  await repository.save("name", state, options);
  await faulty.deliverLate();
  expect(await contentsOf(await repository.load("name", await temporaryFolder()))).toEqual(await contentsOf(state));
  const images = (await collect(inner.list("filesystem-snapshots"))).filter(({ key }) => key.endsWith(".img"));
  expect(images).toHaveLength(1);
});

it("refuses names that it cannot keep, and says which are missing", async () => {
  const { repository, options } = await openRepository();
  const state = await savedState({ a: 1 });
  for (const name of ["", "../x", "a/b", ".x", "-x", "x".repeat(129), "a b"]) {
    await expect(repository.save(name, state, options)).rejects.toMatchObject({ code: "bad_request" });
  }
  await expect(repository.load("missing", await temporaryFolder())).rejects.toMatchObject({
    code: "snapshot_not_found",
  });
  expect(await repository.get("missing")).toBeUndefined();
  expect(await repository.list()).toEqual([]);
});
