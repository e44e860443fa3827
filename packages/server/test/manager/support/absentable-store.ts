import { SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../../../src/store/store.ts";

/** A store that a test takes away and brings back. */
export function absentableStore(): { away: boolean; wrapStore: (store: ObjectStore) => ObjectStore } {
  const state = {
    away: false,
    wrapStore: (store: ObjectStore): ObjectStore =>
      new Proxy(store, {
        get: (target, name) => {
          const method = Reflect.get(target, name) as unknown;
          if (typeof method !== "function") return method;
          return (...args: unknown[]) => {
            if (state.away) throw new SandboxerError("store_unavailable", "the store is away");
            return Reflect.apply(method, target, args) as unknown;
          };
        },
      }),
  };
  return state;
}
