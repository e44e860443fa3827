import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SnapshotPayload } from "../../src/backends/backend.ts";
import { imageKey, recordKey } from "../../src/checkpoints/snapshot-record.ts";
import { SnapshotRepository } from "../../src/checkpoints/snapshot-repository.ts";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { encodeHead } from "../../src/lease/head-codec.ts";
import { newHead } from "../../src/lease/head.ts";
import { deadRecord, encodeRecord, instanceKey, liveRecord } from "../../src/lease/liveness-record.ts";
import { headKey, needsItsSnapshot, readHead } from "../../src/lease/stored-head.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { newSnapshot } from "../checkpoints/snapshot-samples.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { checkpoint, newSandbox } from "../lease/samples.ts";
import { collect } from "../store/store-contract.ts";
import { MemoryStore } from "./memory-store.ts";
import { withoutCondemning, withoutLookingAgain } from "./planted-bugs.ts";
import { type Burst, Turns, whenChanged } from "./turns.ts";

const burstsArbitrary = fc.array(fc.record({ actor: fc.nat({ max: 3 }), steps: fc.integer({ min: 1, max: 30 }) }), {
  maxLength: 16,
});

const SERVER = randomUUID();
const STAMP = { nonce: randomUUID(), now: "2026-11-15T05:00:00.000Z" };
const DEAD = encodeRecord(deadRecord("somebody"));
const LIVING = encodeRecord(liveRecord(null, 1, 15_000));

function state(): SnapshotPayload {
  return { kind: "fake-state", members: [], requirements: { nonce: randomUUID() } };
}

function repositoryOf(store: ObjectStore): SnapshotRepository {
  return new SnapshotRepository(store, { publisher: () => SERVER });
}

async function saveNamed(store: ObjectStore, name = "base") {
  return await repositoryOf(store).save(newSnapshot({ name }), async () => ({ state: state() }), { replaceName: true });
}

/** A store with a server, and a snapshot with a name. */
async function aStore(serverRecord: Uint8Array) {
  const store = new MemoryStore();
  await store.swapCell(instanceKey(SERVER), undefined, serverRecord);
  const { snapshot } = await saveNamed(store);
  return { store, snapshot };
}

async function collectAll(store: ObjectStore) {
  return await collectGarbage({ store, clock: new FakeClock(), apply: true, keep: {} });
}

async function imagesIn(store: ObjectStore): Promise<string[]> {
  return (await collect(store.list("snapshots"))).map(({ key }) => key).filter((key) => key.endsWith(".img"));
}

/** As a server does that makes a sandbox of a snapshot: the head first, then a last look at the record. */
async function begin(store: ObjectStore, snapshotId: string): Promise<string | undefined> {
  const repository = repositoryOf(store);
  if ((await repository.get(snapshotId)) === undefined) return undefined;
  const id = randomUUID();
  const lineage = { sandbox_id: null, checkpoint: null, filesystem_snapshot: null, snapshot: snapshotId };
  const head = newHead(SERVER, { ...newSandbox(), lineage }, STAMP);
  await store.swapCell(headKey(id), undefined, encodeHead(head));
  if ((await repository.get(snapshotId)) !== undefined) return id;
  await store.deleteCell(headKey(id));
  return undefined;
}

/** Two savers that are dead to the others and do not know, one that begins with what has the name first, a collector. */
async function play(bursts: readonly Burst[], plant: (store: ObjectStore) => ObjectStore): Promise<void> {
  const { store, snapshot } = await aStore(DEAD);
  const turns = new Turns();
  const saved: string[] = [];
  const begun: string[] = [];
  const saves = (actor: number) => async (): Promise<void> => {
    try {
      saved.push((await saveNamed(turns.storeOf(actor, store))).snapshot.id);
    } catch (error) {
      expect(error).toMatchObject({
        code: expect.stringMatching(/^(checkpoint_failed|image_damaged|snapshot_not_found)$/),
      });
    }
  };
  const begins = async (): Promise<void> => {
    const id = await begin(turns.storeOf(2, store), snapshot.id);
    if (id !== undefined) begun.push(id);
  };
  const collects = async (): Promise<void> => {
    await collectAll(plant(turns.storeOf(3, store)));
  };
  const check = async (): Promise<void> => {
    const named = await repositoryOf(store).get("base");
    if (named !== undefined && !store.has(imageKey(named.id))) throw new Error(`The name's image is gone.`);
    for (const id of begun) {
      const head = await readHead(store, id);
      if (head !== undefined && needsItsSnapshot(head) && !store.has(imageKey(snapshot.id)))
        throw new Error(`The image that ${id} began with is gone.`);
    }
  };
  const actors = [saves(0), saves(1), begins, collects];
  await turns.run(actors, bursts, whenChanged(store, check), { everyone: true });
  await check();
  const named = await repositoryOf(store).get("base");
  expect(named).toBeDefined();
  if (saved.length > 0) expect([snapshot.id, ...saved]).toContain(named?.id);
}

describe("images of snapshots", () => {
  it("stay while a name or a sandbox needs them, even when others save meanwhile", async () => {
    await fc.assert(
      fc.asyncProperty(burstsArbitrary, async (bursts) => await play(bursts, (store) => store)),
      // As many as a busy machine can do.
      { numRuns: 200, interruptAfterTimeLimit: 60_000 },
    );
  });

  it.each([
    ["tell the record", withoutCondemning],
    ["look at the heads once more", withoutLookingAgain],
  ])("a collector that does not %s is caught", async (_, plant) => {
    const planted = fc.asyncProperty(burstsArbitrary, async (bursts) => await play(bursts, plant));
    const { failed, errorInstance } = await fc.check(planted, { numRuns: 3_000, endOnFailure: true, seed: 10 });
    expect(failed).toBe(true);
    expect(String(errorInstance)).toContain("is gone");
  });

  it.each([
    ["stay while the server that saves them lives", LIVING, 2],
    ["go when that server is dead", DEAD, 1],
  ])("that are not published yet %s", async (_, serverRecord, remaining) => {
    const { store, snapshot } = await aStore(serverRecord);
    // A server that is killed between its image and the last word has written all but that, and does not look either.
    const killed = new Proxy(new Turns().storeOf(0, store), {
      get: (target, property) => {
        if (hasImage && (property === "readCell" || property === "swapCell")) return () => new Promise(() => {});
        if (property !== "write") return Reflect.get(target, property);
        return async (...given: Parameters<ObjectStore["write"]>) => {
          const outcome = await target.write(...given);
          hasImage ||= given[0].endsWith(".img");
          return outcome;
        };
      },
    });
    let hasImage = false;
    void saveNamed(killed, "other");
    await expect.poll(async () => (await imagesIn(store)).length).toBe(2);
    const { garbage, left } = await collectAll(store);
    expect(await imagesIn(store)).toHaveLength(remaining);
    expect(await imagesIn(store)).toContain(imageKey(snapshot.id));
    expect(garbage.filter(({ kind }) => kind === "snapshot")).toHaveLength(2 - remaining);
    expect(left.filter(({ reason }) => reason === "a save may be in progress")).toHaveLength(remaining - 1);
  });

  it("that have lost their name are removed, unless a sandbox would have no state without them", async () => {
    const { store, snapshot } = await aStore(LIVING);
    const sandboxId = await begin(store, snapshot.id);
    const second = (await saveNamed(store)).snapshot;
    await saveNamed(store);
    const { left } = await collectAll(store);
    expect(left).toContainEqual({ key: recordKey(snapshot.id), reason: "in use" });
    expect(store.has(imageKey(snapshot.id))).toBe(true);
    expect(store.has(imageKey(second.id))).toBe(false);

    const head = await readHead(store, sandboxId ?? "");
    const saved = { ...head, state: "parked", owner: null, checkpoint: checkpoint(1) } as NonNullable<typeof head>;
    await store.deleteCell(headKey(sandboxId ?? ""));
    await store.swapCell(headKey(sandboxId ?? ""), undefined, encodeHead(saved));
    await collectAll(store);
    expect(store.has(imageKey(snapshot.id))).toBe(false);
    expect(await imagesIn(store)).toHaveLength(1);
  });

  it("that only a fork created are removed when no sandbox needs them, but not while their server may be forking", async () => {
    const clock = new FakeClock();
    const at = (hours: number): string => new Date(clock.wallMs() - hours * 3_600_000).toISOString();
    const left = async (serverRecord: Uint8Array, hours: number, changes = {}, used = false): Promise<number> => {
      const { store } = await aStore(serverRecord);
      const asked = newSnapshot({ reason: "fork", created_at: at(hours), ...changes });
      const { snapshot } = await repositoryOf(store).save(asked, async () => ({ state: state() }), {
        replaceName: false,
      });
      if (used) await begin(store, snapshot.id);
      await collectAll(store);
      return (await imagesIn(store)).length - 1;
    };
    expect(await left(LIVING, 1)).toBe(1);
    expect(await left(LIVING, 25)).toBe(0);
    expect(await left(DEAD, 1)).toBe(0);
    expect(await left(DEAD, 25, {}, true)).toBe(1);
    expect(await left(DEAD, 25, { labels: { keep: "yes" } })).toBe(1);
    expect(await left(DEAD, 25, { reason: "request" })).toBe(1);
  });

  it("without a record are removed: records are written first and removed last", async () => {
    const { store, snapshot } = await aStore(LIVING);
    await store.deleteCell(recordKey(snapshot.id));
    const { garbage } = await collectAll(store);
    expect(garbage).toMatchObject([{ kind: "snapshot", key: imageKey(snapshot.id) }]);
    expect(await imagesIn(store)).toEqual([]);
  });
});

describe("a removal that fails half-way", () => {
  it.each(["delete", "deleteCell"] as const)(
    "in %s is finished by a collection while its server is alive",
    async (verb) => {
      const { store, snapshot } = await aStore(LIVING);
      const failing = new Proxy<ObjectStore>(store, {
        get: (target, property) => {
          if (property === verb) return async () => await Promise.reject(new Error("The store is away."));
          const value: unknown = Reflect.get(target, property, target);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
      await expect(repositoryOf(failing).remove(snapshot.id, async () => {})).rejects.toThrow("The store is away.");
      expect(await repositoryOf(store).get(snapshot.id)).toBeUndefined();
      await collectGarbage({ store, clock: new FakeClock(), apply: true, keep: {} });
      expect(await store.readCell(recordKey(snapshot.id))).toBeUndefined();
      expect(store.has(imageKey(snapshot.id))).toBe(false);
    },
  );
});
