import { expect, it } from "vitest";
import { SnapshotRepository } from "../../src/checkpoints/snapshot-repository.ts";
import { IndexSurveyor } from "../../src/collection/index-survey.ts";
import { StoreIndex } from "../../src/store/index/store-index.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { MemoryStore } from "../collection/memory-store.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { savedState } from "./saved-states.ts";
import { newSnapshot } from "./snapshot-samples.ts";

const HOUR_MS = 3_600_000;
const SANDBOX = "0f6f1d52-1111-4000-8000-000000000000";
const WRITES: ReadonlySet<PropertyKey> = new Set<keyof ObjectStore>([
  "swapCell",
  "deleteCell",
  "write",
  "writeText",
  "addNames",
  "removeNames",
  "delete",
  "deleteTree",
]);

/** The n-th write, and everything after it, does not happen; or only its answer is lost. */
function crashing(
  inner: ObjectStore,
  turn: number,
  isAnswerLost: boolean,
): { store: ObjectStore; writes: () => number } {
  let writes = 0;
  const store = new Proxy(inner, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function" || !WRITES.has(name)) {
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      }
      return async (...parameters: unknown[]): Promise<unknown> => {
        writes += 1;
        if (writes > turn || (writes === turn && !isAnswerLost)) throw new Error("The server has crashed.");
        const result: unknown = await Reflect.apply(value, target, parameters);
        if (writes === turn) throw new Error("The server has crashed.");
        return result;
      };
    },
  });
  return { store, writes: () => writes };
}

function repositoryOn(store: ObjectStore): { repository: SnapshotRepository; index: StoreIndex } {
  const index = new StoreIndex(store, async () => []);
  return { repository: new SnapshotRepository(store, { publisher: () => "server-1", index }), index };
}

/** Two snapshots, the second one a child of the first, which is then removed. */
async function takeAndRemove(store: ObjectStore): Promise<void> {
  const { repository } = repositoryOn(store);
  const state = await savedState({ a: 100 });
  const [first, second] = [newSnapshot({ sandbox_id: SANDBOX, key: "k" }), newSnapshot({ sandbox_id: SANDBOX })];
  await repository.save(first, async () => ({ state }), { replaceName: true });
  await repository.save({ ...second, parent: first.id }, async () => ({ state }), { replaceName: true });
  await repository.remove(first.id, async () => {});
}

it("the index loses no snapshot and invents none at a crash at any write", async () => {
  const whole = crashing(new MemoryStore(), Infinity, false);
  await takeAndRemove(whole.store);
  const count = whole.writes();
  expect(count).toBeGreaterThan(10);
  for (let turn = 1; turn <= count; turn++) {
    for (const isAnswerLost of [false, true]) {
      const [inner, clock] = [new MemoryStore(), new FakeClock()];
      await takeAndRemove(crashing(inner, turn, isAnswerLost).store).catch(() => {});
      const { repository, index } = repositoryOn(inner);
      const all = (await repository.list()).toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const found = await repository.listIn(index, { sandboxId: SANDBOX });
      expect(found.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(all);
      for (const { id, parent } of all) {
        const children = parent === null ? [] : await repository.listIn(index, { parent });
        if (parent !== null) expect(children.map((child) => child.id)).toEqual([id]);
      }
      const surveyor = new IndexSurveyor();
      const context = { store: inner, clock, apply: true, keep: {} };
      expect((await surveyor.compare(context)).missing).toBe(0);
      clock.stall(HOUR_MS);
      await surveyor.compare(context);
      expect(await surveyor.compare(context)).toEqual({ missing: 0, outdated: 0, unconfirmed: 0 });
    }
  }
});
