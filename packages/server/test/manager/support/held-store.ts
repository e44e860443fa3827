import type { Chunks, ObjectStore } from "../../../src/store/store.ts";

export interface HeldStore {
  readonly wrapStore: (store: ObjectStore) => ObjectStore;
  /** A write of such an object has begun, and waits. */
  readonly reached: Promise<void>;
  release(): void;
}

/** A store in which the n-th write of an object whose name fits waits, after its first bytes, until it is let go. */
export function heldStore(pattern: RegExp, turn = 1): HeldStore {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let seen = 0;
  async function* held(chunks: Chunks): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      yield chunk;
      reached.resolve();
      await released.promise;
    }
  }
  return {
    reached: reached.promise,
    release: released.resolve,
    wrapStore: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name);
          if (name !== "write") return typeof value === "function" ? (value.bind(target) as unknown) : value;
          const write: ObjectStore["write"] = (key, chunks, options) => {
            const holds = pattern.test(key) && ++seen === turn;
            return target.write(key, holds ? held(chunks) : chunks, options);
          };
          return write;
        },
      }),
  };
}
