import { randomUUID } from "node:crypto";
import type { Head } from "@sandboxer/protocol";
import { describe, expect, it } from "vitest";
import { IndexSurveyor } from "../../src/collection/index-survey.ts";
import type { CollectionContext } from "../../src/collection/garbage.ts";
import { entriesOf, sandboxViews } from "../../src/lease/head-entries.ts";
import { HeadIndex } from "../../src/lease/head-index.ts";
import { headMoves, type MoveResult, type Stamp } from "../../src/lease/head.ts";
import { performRequest } from "../../src/lease/store-requests.ts";
import { headKey, readHead } from "../../src/lease/stored-head.ts";
import { StoreIndex } from "../../src/store/index/store-index.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { MemoryStore } from "../collection/memory-store.ts";
import { FakeClock } from "./fake-clock.ts";
import { newSandbox } from "./samples.ts";

const HOUR_MS = 3_600_000;
const [A, B] = ["server-a", "server-b"];

function stamp(): Stamp {
  return { nonce: randomUUID(), now: new Date(1_790_000_000_000).toISOString() };
}

function moved(result: MoveResult): Head {
  if ("refusal" in result) throw new Error(result.refusal);
  return result.head;
}

function labelled(labels: Record<string, string>): Pick<Head, "spec"> {
  return { spec: { network: "none", labels } };
}

/** A sandbox's life: each move takes the present head. */
const LIFE: readonly ((head: Head | undefined) => Head)[] = [
  () => headMoves.newHead(A, { ...newSandbox(), about: { key: "k", name: "n" } as Head["about"] & {} }, stamp()),
  (head) => moved(headMoves.updateDetails({ instanceId: A, epoch: 1 }, labelled({ a: "1" }))(head as Head, stamp())),
  (head) => moved(headMoves.updateDetails({ instanceId: A, epoch: 1 }, labelled({}))(head as Head, stamp())),
  (head) => moved(headMoves.updateDetails({ instanceId: A, epoch: 1 }, labelled({ a: "1" }))(head as Head, stamp())),
  (head) => moved(headMoves.release({ instanceId: A, epoch: 1 })(head as Head, stamp())),
  (head) => moved(headMoves.claim(B)(head as Head, stamp())),
  (head) => moved(headMoves.release({ instanceId: B, epoch: 2 })(head as Head, stamp())),
  (head) => moved(headMoves.claim(A)(head as Head, stamp())),
  (head) => moved(headMoves.destroy({ instanceId: A, epoch: 3 })(head as Head, stamp())),
];

class Crash extends Error {}

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
  const overrides: Partial<ObjectStore> = {
    swapCell: async (key, expected, body) => await write(() => inner.swapCell(key, expected, body)),
    addNames: one((keys) => inner.addNames(keys)),
    removeNames: one((keys) => inner.removeNames(keys)),
  };
  const store = new Proxy(inner, {
    get: (target, name) => {
      const value: unknown = Reflect.get({ ...overrides }, name) ?? Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
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

async function names(store: ObjectStore): Promise<string[]> {
  const listed = await Array.fromAsync(store.list("index"));
  return listed.map(({ key }) => key).filter((key) => !key.endsWith(".json"));
}

function contextOf(store: ObjectStore, clock: FakeClock): CollectionContext {
  return { store, clock, apply: true, keep: {} };
}

async function expectNothingLost(store: ObjectStore, sandboxId: string): Promise<void> {
  const head = await readHead(store, sandboxId);
  const present = await names(store);
  if (head !== undefined) expect(present).toEqual(expect.arrayContaining([...entriesOf(sandboxId, head)]));
}

describe("the index of heads", () => {
  it("loses no head at a crash at any write, and a comparison removes the rest", async () => {
    const whole = crashing(new MemoryStore(), Infinity, false);
    await live(whole.store, randomUUID());
    const count = whole.writes();
    expect(count).toBeGreaterThan(40);
    for (let turn = 1; turn <= count; turn++) {
      for (const isAnswerLost of [false, true]) {
        const [inner, sandboxId, clock] = [new MemoryStore(), randomUUID(), new FakeClock()];
        await live(crashing(inner, turn, isAnswerLost).store, sandboxId);
        await expectNothingLost(inner, sandboxId);
        const surveyor = new IndexSurveyor();
        expect((await surveyor.compare(contextOf(inner, clock))).missing).toBe(0);
        await expectNothingLost(inner, sandboxId);
        clock.stall(HOUR_MS);
        await surveyor.compare(contextOf(inner, clock));
        const head = await readHead(inner, sandboxId);
        expect(await names(inner)).toEqual(
          expect.arrayContaining(head === undefined ? [] : [...entriesOf(sandboxId, head)]),
        );
        expect(await names(inner)).toHaveLength(head === undefined ? 0 : entriesOf(sandboxId, head).length);
      }
    }
  });

  it("has exactly the entries of the head after each move", async () => {
    for (let moves = 1; moves <= LIFE.length; moves++) {
      const [store, sandboxId] = [new MemoryStore(), randomUUID()];
      await live(store, sandboxId, LIFE.slice(0, moves));
      const head = await readHead(store, sandboxId);
      expect((await names(store)).toSorted()).toEqual(entriesOf(sandboxId, head as Head).toSorted());
    }
  });

  it("survives removals that come late, which it would not without epochs and tags", async () => {
    expect(await lostByLateRemovals((key) => key)).toBe(0);
    // The planted bug: the entries of all epochs and tags have the same name.
    expect(await lostByLateRemovals((key) => key.replace(/\.[^./]+$/, ""))).toBeGreaterThan(0);
  });

  it("is built from heads without entries, and complete only if all servers know it", async () => {
    const [store, clock] = [new MemoryStore(), new FakeClock()];
    const sandboxIds = Array.from({ length: 150 }, () => randomUUID());
    for (const sandboxId of sandboxIds) {
      const next = LIFE[0]?.(undefined) as Head;
      await performRequest(store, { kind: "swap-head", sandboxId, expected: undefined, from: undefined, next });
    }
    const index = new StoreIndex(store, async () => true);
    const surveyor = new IndexSurveyor();
    const record = (knows: string[]) =>
      Buffer.from(JSON.stringify({ format: 1, url: null, beat: 1, ttl_ms: 1, nonce: "n", knows }));
    const old = await store.swapCell("instances/old.json", undefined, record([]));
    await surveyor.attend(contextOf(store, clock));
    expect(await index.isComplete()).toBe(false);
    const version = old.outcome === "written" ? old.version : undefined;
    await store.swapCell("instances/old.json", version, record(["index"]));
    await surveyor.attend(contextOf(store, clock));
    expect(await index.isComplete()).toBe(true);
    expect((await Array.fromAsync(index.ids([sandboxViews.all]))).toSorted()).toEqual(sandboxIds.toSorted());
    expect(await Array.fromAsync(index.ids([sandboxViews.key("k"), sandboxViews.owner(A)]))).toHaveLength(150);
    expect(await Array.fromAsync(index.ids([sandboxViews.key("k"), sandboxViews.paused]))).toEqual([]);
    await store.swapCell("instances/older.json", undefined, record([]));
    await surveyor.attend(contextOf(store, clock));
    expect(await index.isComplete()).toBe(false);
  });
});

/** How many entries of the present head are missing after a life in which every removal is delivered a move late. */
async function lostByLateRemovals(nameOf: (key: string) => string): Promise<number> {
  const [inner, sandboxId] = [new MemoryStore(), randomUUID()];
  const renamed = (keys: readonly string[]): string[] => keys.map(nameOf);
  let late: readonly string[] = [];
  const overrides: Partial<ObjectStore> = {
    addNames: async (keys) => await inner.addNames(renamed(keys)),
    removeNames: async (keys) => {
      late = renamed(keys);
    },
    swapCell: async (key, expected, body) => {
      const swapped = await inner.swapCell(key, expected, body);
      await inner.removeNames(late);
      late = [];
      return swapped;
    },
  };
  const store = new Proxy<ObjectStore>(inner, {
    get: (target, name) => {
      const value: unknown = Reflect.get(overrides, name) ?? Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  let lost = 0;
  for (let moves = 1; moves <= LIFE.length; moves++) {
    await live(store, `${sandboxId.slice(0, -1)}${moves}`, LIFE.slice(0, moves));
    const head = (await readHead(inner, `${sandboxId.slice(0, -1)}${moves}`)) as Head;
    const present = new Set(await names(inner));
    lost += renamed(entriesOf(`${sandboxId.slice(0, -1)}${moves}`, head)).filter((key) => !present.has(key)).length;
    late = [];
  }
  return lost;
}
