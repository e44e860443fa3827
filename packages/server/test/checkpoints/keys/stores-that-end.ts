import type { ObjectStore } from "../../../src/store/store.ts";

/** How often a rotation of one data key asks the store for something. */
export const ROTATION_CALLS = 13;

const CHANGES = ["write", "swapCell", "delete"];

/** Ends, as a killed process does, after that many changes. */
export function endingAt(store: ObjectStore, last: number): ObjectStore {
  let calls = 0;
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]): unknown => {
        if (CHANGES.includes(String(name)) && ++calls > last) throw new Error("killed");
        return (value as (...args: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}

/** Before the call of that number something else is done, all of it. */
export function interruptedAt(store: ObjectStore, number: number, meanwhile: () => Promise<unknown>): ObjectStore {
  let calls = 0;
  const step = async (): Promise<void> => {
    if (++calls === number) await meanwhile();
  };
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      const call = (...args: unknown[]): unknown => (value as (...args: unknown[]) => unknown).apply(target, args);
      if ([...CHANGES, "readCell"].includes(String(name))) {
        return async (...args: unknown[]): Promise<unknown> => {
          await step();
          return await call(...args);
        };
      }
      if (!["list", "read"].includes(String(name))) return call;
      return async function* (...args: unknown[]) {
        await step();
        yield* call(...args) as AsyncIterable<unknown>;
      };
    },
  });
}
