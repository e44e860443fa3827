import { randomUUID } from "node:crypto";
import type { Head } from "@sandboxer/protocol";
import { describe, expect, it } from "vitest";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { IndexSurveyor } from "../../src/collection/index-survey.ts";
import type { CollectionContext } from "../../src/collection/garbage.ts";
import { entriesOf, sandboxViews } from "../../src/lease/head-entries.ts";
import { HeadIndex } from "../../src/lease/head-index.ts";
import { headMoves, type MoveResult, type Stamp } from "../../src/lease/head.ts";
import { listServerIds } from "../../src/lease/known-records.ts";
import { deadRecord, encodeRecord, instanceKey, liveRecord } from "../../src/lease/liveness-record.ts";
import { performRequest } from "../../src/lease/store-requests.ts";
import { headKey, readHead } from "../../src/lease/stored-head.ts";
import { INDEX_STATE_KEY, StoreIndex } from "../../src/store/index/store-index.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { MemoryStore } from "../collection/memory-store.ts";
import { FakeClock } from "./fake-clock.ts";
import { checkpoint, newSandbox } from "./samples.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const [A, B] = ["server-a", "server-b"];
const ABOUT = { key: "k", name: "n" } as Head["about"] & {};

let stamps = 0;

/** As one server makes them. */
function stamp(): Stamp {
  return { nonce: `4a1c0a9e-0000-4000-8000-000000000000.${++stamps}`, now: new Date(1_790_000_000_000).toISOString() };
}

function moved(result: MoveResult): Head {
  if ("refusal" in result) throw new Error(result.refusal);
  return result.head;
}

function labelled(labels: Record<string, string>): Pick<Head, "spec"> {
  return { spec: { network: "none", labels } };
}

type LifeMove = (head: Head | undefined) => Head;

function by(move: (head: Head) => MoveResult): LifeMove {
  return (head) => moved(move(head as Head));
}

const CREATE: LifeMove = () => headMoves.newHead(A, { ...newSandbox(), about: ABOUT }, stamp());

/** A sandbox's life: each move takes the present head. */
const LIFE: readonly LifeMove[] = [
  CREATE,
  by((head) => headMoves.publishCheckpoint({ instanceId: A, epoch: 1 }, checkpoint(1))(head, stamp())),
  by((head) => headMoves.updateDetails({ instanceId: A, epoch: 1 }, labelled({ a: "1" }))(head, stamp())),
  by((head) => headMoves.updateDetails({ instanceId: A, epoch: 1 }, labelled({}))(head, stamp())),
  by((head) => headMoves.updateDetails({ instanceId: A, epoch: 1 }, labelled({ a: "1" }))(head, stamp())),
  by((head) => headMoves.ask(B, "request")(head, stamp())),
  by((head) => headMoves.release({ instanceId: A, epoch: 1 }, checkpoint(2))(head, stamp())),
  by((head) => headMoves.claim(B)(head, stamp())),
  // A rewind, and a promotion.
  by((head) => {
    const lineage = { ...head.lineage, sandbox_id: randomUUID(), snapshot: randomUUID() };
    return headMoves.replaceState({ instanceId: B, epoch: 2 }, { lineage, checkpoint: checkpoint(3) })(head, stamp());
  }),
  by((head) => {
    const promotion = { sandbox_id: randomUUID(), former: randomUUID(), promoted_at: stamp().now, ends: [] };
    const about = { ...ABOUT, name: "other" };
    return headMoves.replaceState({ instanceId: B, epoch: 2 }, { about, promotion })(head, stamp());
  }),
  by((head) => {
    const { spec, flags, about = ABOUT, lineage } = head;
    const home = {
      backend: "other",
      spec,
      flags,
      about,
      lineage,
      residence: "store",
      copy: 1,
      spare_copy: null,
    } as const;
    return headMoves.rehouse({ instanceId: B, epoch: 3 }, home)(head, stamp());
  }),
  by((head) => headMoves.release({ instanceId: B, epoch: 4 })(head, stamp())),
  by((head) => headMoves.claim(A)(head, stamp())),
  by((head) => headMoves.destroy({ instanceId: A, epoch: 5 })(head, stamp())),
];

class Crash extends Error {}

function overriding(inner: ObjectStore, overrides: Partial<ObjectStore>): ObjectStore {
  return new Proxy(inner, {
    get: (target, name) => {
      const value: unknown = Reflect.get({ ...overrides }, name) ?? Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** A store in which the n-th write, and everything after it, does not happen; or only its answer is lost. */
function crashing(
  inner: ObjectStore,
  turn: number,
  isAnswerLost: boolean,
): { store: ObjectStore; writes: () => number } {
  let writes = 0;
  const write = async <T>(apply: () => Promise<T>): Promise<T> => {
    writes += 1;
    if (writes > turn || (writes === turn && !isAnswerLost)) throw new Crash();
    const result = await apply();
    if (writes === turn) throw new Crash();
    return result;
  };
  const one =
    (call: (keys: readonly string[]) => Promise<void>) =>
    async (keys: readonly string[]): Promise<void> => {
      for (const key of keys) await write(async () => await call([key]));
    };
  const store = overriding(inner, {
    swapCell: async (key, expected, body) => await write(() => inner.swapCell(key, expected, body)),
    addNames: one((keys) => inner.addNames(keys)),
    removeNames: one((keys) => inner.removeNames(keys)),
  });
  return { store, writes: () => writes };
}

/** Lets a sandbox live until the crash. */
async function live(store: ObjectStore, sandboxId: string, moves = LIFE): Promise<void> {
  const index = new HeadIndex(store, new FakeClock());
  for (const move of moves) {
    const from = await readHead(store, sandboxId);
    const expected = (await store.readCell(headKey(sandboxId)))?.version;
    const request = { kind: "swap-head", sandboxId, expected, from, next: move(from) } as const;
    const reply = await performRequest(store, request, index);
    await index.settled();
    if (reply.outcome !== "written") return;
  }
}

/** As a server of an earlier release does. */
async function createWithoutEntries(store: ObjectStore, sandboxId: string): Promise<void> {
  const request = {
    kind: "swap-head",
    sandboxId,
    expected: undefined,
    from: undefined,
    next: CREATE(undefined),
  } as const;
  await performRequest(store, request);
}

async function names(store: ObjectStore): Promise<string[]> {
  const listed = await Array.fromAsync(store.list("index"));
  return listed.map(({ key }) => key).filter((key) => !key.endsWith(".json"));
}

function contextOf(store: ObjectStore, clock = new FakeClock()): CollectionContext {
  return { store, clock, apply: true, keep: {}, indexed: true };
}

async function neededNow(store: ObjectStore, sandboxId: string): Promise<string[]> {
  const head = await readHead(store, sandboxId);
  return head === undefined ? [] : [...entriesOf(sandboxId, head)];
}

function indexOf(store: ObjectStore): StoreIndex {
  return new StoreIndex(store, () => listServerIds(store));
}

/** Writes a liveness record; `dead`: of a server that has ended. */
async function put(store: ObjectStore, instanceId: string, dead = false): Promise<void> {
  const key = instanceKey(instanceId);
  const record = dead ? deadRecord(instanceId) : liveRecord(null, 1, 15_000);
  await store.swapCell(key, (await store.readCell(key))?.version, encodeRecord(record));
}

describe("the index of heads", () => {
  it("loses no head at a crash at any write, and comparisons remove the rest", async () => {
    const whole = crashing(new MemoryStore(), Infinity, false);
    await live(whole.store, randomUUID());
    const count = whole.writes();
    expect(count).toBeGreaterThan(60);
    for (let turn = 1; turn <= count; turn++) {
      for (const isAnswerLost of [false, true]) {
        const [inner, sandboxId, clock] = [new MemoryStore(), randomUUID(), new FakeClock()];
        await live(crashing(inner, turn, isAnswerLost).store, sandboxId);
        const needed = await neededNow(inner, sandboxId);
        expect(await names(inner)).toEqual(expect.arrayContaining(needed));
        const surveyor = new IndexSurveyor();
        expect((await surveyor.compare(contextOf(inner, clock))).missing).toBe(0);
        expect(await names(inner)).toEqual(expect.arrayContaining(needed));
        clock.stall(HOUR_MS);
        await surveyor.compare(contextOf(inner, clock));
        expect((await names(inner)).toSorted()).toEqual(needed.toSorted());
      }
    }
  });

  it("has exactly the entries of the head after each move", async () => {
    for (let moves = 1; moves <= LIFE.length; moves++) {
      const [store, sandboxId] = [new MemoryStore(), randomUUID()];
      await live(store, sandboxId, LIFE.slice(0, moves));
      expect((await names(store)).toSorted()).toEqual((await neededNow(store, sandboxId)).toSorted());
    }
  });

  it("survives removals that come late, which it would not without epochs and tags", async () => {
    expect(await lostByLateRemovals((key) => key)).toBe(0);
    // The planted bug: the entries of all epochs and tags have the same name.
    expect(await lostByLateRemovals((key) => key.replace(/\.[^./]+$/, ""))).toBeGreaterThan(0);
  });

  it("keeps a replaced entry until lists in progress have ended", async () => {
    const [store, sandboxId, clock] = [new MemoryStore(), randomUUID(), new FakeClock()];
    await live(store, sandboxId, LIFE.slice(0, 3));
    const before = await neededNow(store, sandboxId);
    const index = new HeadIndex(store, clock);
    const from = await readHead(store, sandboxId);
    const next = LIFE[3]?.(from) as Head;
    const expected = (await store.readCell(headKey(sandboxId)))?.version;
    await performRequest(store, { kind: "swap-head", sandboxId, expected, from, next }, index);
    const label = before.filter((key) => key.startsWith("index/label-"));
    const renamed = before.filter((key) => key.startsWith("index/name-"));
    expect(renamed).toHaveLength(1);
    await expect.poll(() => names(store)).not.toContain(label[0]);
    expect(await names(store)).toContain(renamed[0]);
    clock.advance(MINUTE_MS);
    await expect.poll(() => names(store)).not.toContain(renamed[0]);
    await index.settled();
  });

  it("is built from heads without entries, and lists them in order", async () => {
    const store = new MemoryStore();
    const sandboxIds = Array.from({ length: 150 }, () => randomUUID());
    for (const sandboxId of sandboxIds) await createWithoutEntries(store, sandboxId);
    const index = indexOf(store);
    expect(await index.isComplete()).toBe(false);
    await new IndexSurveyor().attend(contextOf(store));
    expect(await index.isComplete()).toBe(true);
    expect(await Array.fromAsync(index.ids([sandboxViews.all]))).toEqual(sandboxIds.toSorted());
    expect(await Array.fromAsync(index.ids([sandboxViews.key("k"), sandboxViews.owner(A)]))).toHaveLength(150);
    expect(await Array.fromAsync(index.ids([sandboxViews.key("k"), sandboxViews.paused]))).toEqual([]);
  });

  it("is not used while or after a server without entries ran, until its heads are compared", async () => {
    const store = new MemoryStore();
    const [surveyor, index, sandboxId] = [new IndexSurveyor(), indexOf(store), randomUUID()];
    await put(store, "new");
    await new HeadIndex(store, new FakeClock()).enroll("new", new AbortController().signal);
    await surveyor.attend(contextOf(store));
    expect(await index.isComplete()).toBe(true);
    await put(store, "old");
    expect(await index.isComplete()).toBe(false);
    await createWithoutEntries(store, sandboxId);
    await surveyor.attend(contextOf(store));
    expect(await index.isComplete()).toBe(false);
    // It came and went between two looks of the collector.
    await put(store, "old", true);
    expect(await index.isComplete()).toBe(false);
    await surveyor.attend(contextOf(store));
    expect(await index.isComplete()).toBe(true);
    expect(await Array.fromAsync(index.ids([sandboxViews.all]))).toEqual([sandboxId]);
    // Ends of servers with entries change nothing.
    await put(store, "new", true);
    expect(await index.isComplete()).toBe(true);
  });

  it("forgets a writer only after its record, which a collection removes after the comparison", async () => {
    const store = new MemoryStore();
    const surveyor = new IndexSurveyor();
    for (const instanceId of ["new", "old"]) await put(store, instanceId, true);
    await new HeadIndex(store, new FakeClock()).enroll("new", new AbortController().signal);
    const sandboxId = randomUUID();
    await createWithoutEntries(store, sandboxId);
    const { index } = await collectGarbage(contextOf(store), surveyor);
    expect(index).toEqual({
      missing: entriesOf(sandboxId, (await readHead(store, sandboxId)) as Head).length,
      outdated: 0,
      unconfirmed: 0,
    });
    expect(await listServerIds(store)).toEqual([]);
    expect(await indexOf(store).isComplete()).toBe(true);
    expect(await names(store)).toContain("index/servers/new");
    await surveyor.compare(contextOf(store));
    expect(await names(store)).not.toContain("index/servers/new");
  });

  it("is not used after a server without entries that died during a collection, which keeps its record", async () => {
    const inner = new MemoryStore();
    await put(inner, "old");
    const store = overriding(inner, {
      list: async function* list(folder) {
        yield* inner.list(folder);
        // After its last snapshot, which was not in that list.
        if (folder === "snapshots") await put(inner, "old", true);
      },
    });
    await collectGarbage(contextOf(store), new IndexSurveyor());
    expect(await listServerIds(inner)).toEqual(["old"]);
    expect(await indexOf(inner).isComplete()).toBe(false);
    await new IndexSurveyor().attend(contextOf(inner));
    expect(await indexOf(inner).isComplete()).toBe(true);
  });

  it("enrolls a server as soon as the store answers", async () => {
    const [store, clock] = [new MemoryStore(), { monotonicMs: () => 0, sleep: async () => {} }];
    let failures = 2;
    const failing = overriding(store, {
      addNames: async (keys) => {
        if (failures-- > 0) throw new Crash();
        await store.addNames(keys);
      },
    });
    await new HeadIndex(failing, clock).enroll("me", new AbortController().signal);
    expect(await names(store)).toEqual(["index/servers/me"]);
  });

  it("keeps the entries of a head that cannot be read, and finds it by its id", async () => {
    const [store, clock, sandboxId] = [new MemoryStore(), new FakeClock(), randomUUID()];
    await live(store, sandboxId, LIFE.slice(0, 1));
    const needed = await neededNow(store, sandboxId);
    await store.swapCell(headKey(sandboxId), (await store.readCell(headKey(sandboxId)))?.version, Buffer.from("{"));
    const surveyor = new IndexSurveyor();
    for (let hour = 0; hour < 3; hour++) {
      await surveyor.compare(contextOf(store, clock));
      clock.stall(HOUR_MS);
    }
    expect(await names(store)).toEqual(expect.arrayContaining(needed));
    expect(await Array.fromAsync(indexOf(store).ids([sandboxViews.unreadable]))).toEqual([sandboxId]);
  });

  it("gets an abandoned entry back if its writer continues while it is removed", async () => {
    const [inner, clock, sandboxId] = [new MemoryStore(), new FakeClock(), randomUUID()];
    const next = CREATE(undefined);
    const entries = entriesOf(sandboxId, next);
    await inner.addNames(entries);
    const store = overriding(inner, {
      removeNames: async (keys) => {
        await performRequest(inner, { kind: "swap-head", sandboxId, expected: undefined, from: undefined, next });
        await inner.removeNames(keys);
      },
    });
    const surveyor = new IndexSurveyor();
    expect(await surveyor.compare(contextOf(store, clock))).toEqual({
      missing: 0,
      outdated: 0,
      unconfirmed: entries.length,
    });
    clock.stall(HOUR_MS);
    expect(await surveyor.compare(contextOf(store, clock))).toMatchObject({ outdated: entries.length });
    expect((await names(inner)).toSorted()).toEqual(entries.toSorted());
  });

  it("is only reported without `apply`, and left alone and not used if its state is of a later release", async () => {
    const [store, sandboxId] = [new MemoryStore(), randomUUID()];
    await createWithoutEntries(store, sandboxId);
    const context = contextOf(store);
    expect(await new IndexSurveyor().compare({ ...context, apply: false })).toMatchObject({ missing: 6, outdated: 0 });
    expect(await names(store)).toEqual([]);
    const body = Buffer.from(JSON.stringify({ format: 2 }));
    await store.swapCell(INDEX_STATE_KEY, undefined, body);
    await new IndexSurveyor().attend(context);
    await put(store, "old", true);
    const { index, left } = await collectGarbage(context, new IndexSurveyor());
    expect(index?.failure).toContain(INDEX_STATE_KEY);
    expect(left).toContainEqual({ key: instanceKey("old"), reason: "the index could not be compared" });
    expect(await listServerIds(store)).toEqual(["old"]);
    expect((await store.readCell(INDEX_STATE_KEY))?.body).toEqual(body);
    expect(await indexOf(store).isComplete()).toBe(false);
  });
});

/** How many entries of the present head are missing after a life in which every removal is delivered a move late. */
async function lostByLateRemovals(nameOf: (key: string) => string): Promise<number> {
  const [inner, sandboxId] = [new MemoryStore(), randomUUID()];
  const renamed = (keys: readonly string[]): string[] => keys.map(nameOf);
  let late: readonly string[] = [];
  const store = overriding(inner, {
    addNames: async (keys) => await inner.addNames(renamed(keys)),
    removeNames: async (keys) => {
      late = [...late, ...renamed(keys)];
    },
    swapCell: async (key, expected, body) => {
      const swapped = await inner.swapCell(key, expected, body);
      await inner.removeNames(late);
      late = [];
      return swapped;
    },
  });
  let lost = 0;
  for (let moves = 1; moves <= LIFE.length; moves++) {
    const id = `${sandboxId.slice(0, -2)}${String(moves).padStart(2, "0")}`;
    await live(store, id, LIFE.slice(0, moves));
    const present = new Set(await names(inner));
    lost += renamed(await neededNow(inner, id)).filter((key) => !present.has(key)).length;
    late = [];
  }
  return lost;
}
