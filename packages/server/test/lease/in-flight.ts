import type { ObjectStore } from "../../src/store/store.ts";

/** Counts the requests that a store has not answered yet, so that a test can wait until nothing is under way. */
export function countInFlight(store: ObjectStore): { readonly store: ObjectStore; readonly inFlight: () => number } {
  let inFlight = 0;
  const counted = new Proxy<ObjectStore>(store, {
    get: (target, property) => {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== "function") return value;
      return (...parameters: unknown[]): unknown => {
        const result: unknown = Reflect.apply(value, target, parameters);
        if (!(result instanceof Promise)) return result;
        inFlight++;
        return result.finally(() => inFlight--);
      };
    },
  });
  return { store: counted, inFlight: () => inFlight };
}
