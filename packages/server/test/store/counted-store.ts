import type { ObjectStore } from "../../src/store/store.ts";

/** The calls that a bucket charges for and answers in one request. */
export interface RequestCounts {
  get: number;
  put: number;
  list: number;
  delete: number;
}

type Kind = keyof RequestCounts;

const KINDS: ReadonlyMap<PropertyKey, Kind> = new Map<PropertyKey, Kind>([
  ["readCell", "get"],
  ["stat", "get"],
  ["read", "get"],
  ["verify", "get"],
  ["swapCell", "put"],
  ["write", "put"],
  ["writeText", "put"],
  ["deleteCell", "delete"],
  ["delete", "delete"],
  ["deleteTree", "delete"],
]);
const LISTS = new Set<PropertyKey>(["list", "listCells", "listMarks", "listFolders"]);
const PAGE = 1000;

export interface CountedStore {
  readonly store: ObjectStore;
  readonly counts: RequestCounts;
  /** Requests without an answer: now, and at most. */
  readonly inFlight: { now: number; most: number };
}

/** A store that counts its requests as a bucket would. `answer` delays each answer. */
export function countedStore(inner: ObjectStore, answer: () => Promise<void> = async () => {}): CountedStore {
  const counts: RequestCounts = { get: 0, put: 0, list: 0, delete: 0 };
  const inFlight = { now: 0, most: 0 };
  const requested = async <T>(kind: Kind, work: () => Promise<T>): Promise<T> => {
    counts[kind] += 1;
    inFlight.now += 1;
    inFlight.most = Math.max(inFlight.most, inFlight.now);
    try {
      await answer();
      return await work();
    } finally {
      inFlight.now -= 1;
    }
  };
  async function* pages(listed: AsyncIterable<unknown>): AsyncGenerator<unknown, void, undefined> {
    const all = await requested("list", async () => await Array.fromAsync(listed));
    counts.list += Math.max(0, Math.ceil(all.length / PAGE) - 1);
    yield* all;
  }
  const store = new Proxy(inner, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      const call = (parameters: unknown[]): unknown => Reflect.apply(value, target, parameters);
      if (LISTS.has(name)) return (...parameters: unknown[]) => pages(call(parameters) as AsyncIterable<unknown>);
      const kind = KINDS.get(name);
      if (kind === undefined) return (...parameters: unknown[]) => call(parameters);
      if (name === "read") {
        return (...parameters: unknown[]) => {
          counts.get += 1;
          return call(parameters);
        };
      }
      return async (...parameters: unknown[]) =>
        await requested(kind, async () => await (call(parameters) as Promise<unknown>));
    },
  });
  return { store, counts, inFlight };
}
