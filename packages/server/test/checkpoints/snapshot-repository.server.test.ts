import { randomUUID } from "node:crypto";
import { open, truncate, unlink } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import type { SnapshotPayload } from "../../src/backends/backend.ts";
import { imageKey } from "../../src/checkpoints/snapshot-record.ts";
import { SnapshotNames } from "../../src/checkpoints/snapshot-names.ts";
import { SnapshotRepository } from "../../src/checkpoints/snapshot-repository.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { FaultyStore, type SwapFault } from "../lease/faulty-store.ts";
import { collect } from "../store/store-contract.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { contentsOf, savedState } from "./saved-states.ts";
import { newSnapshot } from "./snapshot-samples.ts";

const PUBLISHER = { publisher: () => "server-1" };
const NOTHING_DEPENDS = async (): Promise<void> => {};

async function openRepository() {
  const root = await temporaryFolder();
  const store = await DirectoryStore.open(root);
  return { root, store, repository: new SnapshotRepository(store, PUBLISHER) };
}

async function save(
  repository: SnapshotRepository,
  state: SnapshotPayload,
  { name = null as string | null, replaceName = true } = {},
) {
  return await repository.save(newSnapshot({ name }), async () => ({ state }), { replaceName });
}

async function imagesIn(store: DirectoryStore): Promise<readonly string[]> {
  return (await collect(store.list("snapshots"))).map(({ key }) => key).filter((key) => key.endsWith(".img"));
}

describe("a snapshot", () => {
  it("is found by its id and its name, and loaded unchanged", async () => {
    const { repository } = await openRepository();
    const state = await savedState({ a: 100 });
    const { snapshot } = await save(repository, state, { name: "base-1.0" });
    await save(repository, state);
    expect(snapshot).toMatchObject({ state: "ready", name: "base-1.0", kind: "fake-state", publisher: "server-1" });
    expect(await repository.get(snapshot.id)).toEqual(snapshot);
    expect(await repository.get("base-1.0")).toEqual(snapshot);
    expect(await repository.list()).toHaveLength(2);
    const loaded = await repository.load(snapshot.id, await temporaryFolder());
    expect(await contentsOf(loaded)).toEqual(await contentsOf(state));
  });

  it("is not listed until its image is stored, and leaves nothing when its capture fails", async () => {
    const { store, repository } = await openRepository();
    const sample = newSnapshot({ name: "base" });
    const capture = async (): Promise<never> => {
      expect(await repository.list()).toEqual([]);
      throw new Error("the capture failed");
    };
    await expect(repository.save(sample, capture, { replaceName: true })).rejects.toThrow("the capture failed");
    expect(await repository.get("base")).toBeUndefined();
    expect(await collect(store.list("snapshots"))).toEqual([]);
  });

  it.each([
    ["missing", async (path: string) => await unlink(path), "missing"],
    ["cut short", async (path: string) => await truncate(path, 4096), "damaged"],
  ] as const)("whose image is %s says so, and is marked", async (_, damage, state) => {
    const { root, repository } = await openRepository();
    const { snapshot } = await save(repository, await savedState({ a: 100 }));
    await damage(join(root, imageKey(snapshot.id)));
    await expect(repository.load(snapshot.id, await temporaryFolder())).rejects.toMatchObject({
      code: "image_damaged",
      details: { snapshot_id: snapshot.id, state },
    });
    expect(await repository.get(snapshot.id)).toMatchObject({ state, problem: expect.stringContaining("image.img") });
  });

  it("is not listed while the store is unavailable, which is reported as one error", async () => {
    const { store, repository } = await openRepository();
    // More than are read at once.
    for (let number = 0; number < 20; number += 1) await save(repository, await savedState({ a: 1 }));
    const unheard: unknown[] = [];
    const listen = (error: unknown): void => void unheard.push(error);
    process.on("unhandledRejection", listen);
    onTestFinished(() => void process.off("unhandledRejection", listen));
    const away = new Proxy<ObjectStore>(store, {
      get: (target, property) => {
        if (property === "readCell") return async () => await Promise.reject(new Error("The store is away."));
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    await expect(new SnapshotRepository(away, PUBLISHER).list()).rejects.toThrow("The store is away.");
    await setImmediate();
    expect(unheard).toEqual([]);
  });

  it("is checked byte for byte on request", async () => {
    const { root, repository } = await openRepository();
    const { snapshot } = await save(repository, await savedState({ a: 10_000 }));
    expect(await repository.verify(snapshot.id)).toMatchObject({ state: "ready", problem: null });
    const file = await open(join(root, imageKey(snapshot.id)), "r+");
    await file.write(Buffer.from("xxxx"), 0, 4, 4096 + 500);
    await file.close();
    expect(await repository.verify(snapshot.id)).toMatchObject({
      state: "damaged",
      problem: expect.stringContaining("digest"),
    });
  });

  it("is kept while a sandbox needs it, even if that was created meanwhile", async () => {
    const { store, repository } = await openRepository();
    const { snapshot } = await save(repository, await savedState({ a: 100 }), { name: "base" });
    const inUse = new Error("in use");
    await expect(repository.remove(snapshot.id, async () => Promise.reject(inUse))).rejects.toBe(inUse);
    let looks = 0;
    const cameOnTheWay = async (): Promise<void> => {
      looks += 1;
      // Nobody can begin with it any more, and who has begun gets it.
      if (looks === 2) expect(await repository.get(snapshot.id)).toBeUndefined();
      if (looks === 2) await repository.load(snapshot.id, await temporaryFolder());
      if (looks === 2) throw inUse;
    };
    await expect(repository.remove(snapshot.id, cameOnTheWay)).rejects.toBe(inUse);
    expect(await repository.get("base")).toMatchObject({ id: snapshot.id, state: "ready" });
    await repository.remove(snapshot.id, NOTHING_DEPENDS);
    expect(await repository.get("base")).toBeUndefined();
    expect(await imagesIn(store)).toEqual([]);
    await expect(repository.load(snapshot.id, await temporaryFolder())).rejects.toMatchObject({
      code: "snapshot_not_found",
    });
  });

  it.each([{ pinned: true }, { name: "taken" }, { labels: { a: "b" } }])(
    "that is being removed is not changed any more: %j",
    async (changes) => {
      const { store, repository } = await openRepository();
      const { snapshot } = await save(repository, await savedState({ a: 100 }));
      const [looked, decided] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let looks = 0;
      const refuse = async (): Promise<void> => {
        looks += 1;
        if (looks === 1) return;
        looked.resolve();
        await decided.promise;
      };
      let removal: Promise<void> | undefined;
      // The caller that changes it has read it; then its removal begins.
      const between = new Proxy<ObjectStore>(store, {
        get: (target, property) => {
          const value: unknown = Reflect.get(target, property, target);
          if (property !== "readCell") return typeof value === "function" ? (value.bind(target) as unknown) : value;
          return async (key: string) => {
            const cell = await target.readCell(key);
            removal ??= repository.remove(snapshot.id, refuse);
            await looked.promise;
            return cell;
          };
        },
      });
      const amended = new SnapshotRepository(between, PUBLISHER).amend(snapshot.id, changes);
      await expect(amended).rejects.toMatchObject({ code: "snapshot_not_found" });
      decided.resolve();
      await removal;
      expect(await new SnapshotNames(store).holder("taken")).toBeUndefined();
    },
  );
});

describe("a name", () => {
  it("moves in one step, or is refused", async () => {
    const { repository } = await openRepository();
    const state = await savedState({ a: 1 });
    const first = (await save(repository, state, { name: "base" })).snapshot;
    await expect(save(repository, state, { name: "base", replaceName: false })).rejects.toMatchObject({
      code: "name_taken",
      details: { snapshot_id: first.id },
    });
    expect(await repository.list()).toHaveLength(1);
    const second = await save(repository, state, { name: "base" });
    expect(second.replacedId).toBe(first.id);
    expect(await repository.get("base")).toMatchObject({ id: second.snapshot.id });
    expect(await repository.get(first.id)).toMatchObject({ name: null });
  });

  it("goes to one of several concurrent callers, and nothing is left of the others", async () => {
    const { store, repository } = await openRepository();
    const state = await savedState({ a: 1 });
    const outcomes = await Promise.allSettled(
      [1, 2, 3, 4].map(async () => await save(repository, state, { name: "base", replaceName: false })),
    );
    const refused = outcomes.filter((each) => each.status === "rejected").map(({ reason }) => reason as unknown);
    expect(refused).toHaveLength(3);
    for (const error of refused) expect(error).toMatchObject({ code: "name_taken" });
    expect(await repository.list()).toMatchObject([{ name: "base" }]);
    expect(await imagesIn(store)).toHaveLength(1);
  });

  it("can be changed, removed and used again", async () => {
    const { repository } = await openRepository();
    const state = await savedState({ a: 1 });
    const first = (await save(repository, state, { name: "base" })).snapshot;
    const second = (await save(repository, state)).snapshot;
    await expect(repository.amend(second.id, { name: "base" })).rejects.toMatchObject({ code: "name_taken" });
    await repository.amend(first.id, { name: "old", labels: { team: "ml" } });
    expect(await repository.amend(second.id, { name: "base" })).toMatchObject({ name: "base" });
    expect(await repository.get("old")).toMatchObject({ id: first.id, labels: { team: "ml" } });
    expect(await repository.get("base")).toMatchObject({ id: second.id });
    await repository.amend(first.id, { name: null });
    expect(await repository.get("old")).toBeUndefined();
    await repository.remove(second.id, NOTHING_DEPENDS);
    expect(await repository.amend(first.id, { name: "base" })).toMatchObject({ name: "base" });
  });

  it("names a complete snapshot, even when others save at the same time", async () => {
    const { repository } = await openRepository();
    const states = await Promise.all([100, 200, 300, 400].map(async (sizeBytes) => await savedState({ a: sizeBytes })));
    await Promise.all(states.map(async (state) => await save(repository, state, { name: "busy" })));
    const { id } = (await repository.get("busy")) ?? { id: "" };
    const loaded = await contentsOf(await repository.load(id, await temporaryFolder()));
    expect(await Promise.all(states.map(contentsOf))).toContainEqual(loaded);
    expect((await repository.list()).filter(({ name }) => name === "busy")).toHaveLength(1);
  });

  it.each(["", "../x", "a/b", ".x", "-x", "x".repeat(129), "a b", randomUUID()])("is never %j", async (name) => {
    const { repository } = await openRepository();
    await expect(save(repository, await savedState({ a: 1 }), { name })).rejects.toMatchObject({ code: "bad_request" });
    expect(await repository.list()).toEqual([]);
  });
});

const FAULTS: readonly SwapFault[] = ["lost_request", "lost_reply", "late"];
/** The swaps of a save under a name: its announcement, its publication, the name. */
const SWAPS = [0, 1, 2];

describe.each(FAULTS)("after a %s", (fault) => {
  it.each(SWAPS)("of swap %i a save is complete", async (swap) => {
    const { store: inner } = await openRepository();
    const faulty = new FaultyStore(inner);
    const repository = new SnapshotRepository(faulty.store, PUBLISHER);
    await save(repository, await savedState({ a: 100 }), { name: "name" });
    const state = await savedState({ a: 200 });
    faulty.faults.push(...Array.from({ length: swap }, () => "none" as const), fault);
    const { snapshot, replacedId } = await save(repository, state, { name: "name" });
    await faulty.deliverLate();
    expect(await repository.get("name")).toMatchObject({ id: snapshot.id, state: "ready" });
    expect(await contentsOf(await repository.load(snapshot.id, await temporaryFolder()))).toEqual(
      await contentsOf(state),
    );
    await repository.remove(replacedId ?? "", NOTHING_DEPENDS);
    expect(await imagesIn(inner)).toEqual([imageKey(snapshot.id)]);
  });
});
