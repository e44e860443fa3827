import type { ObjectStore } from "../../../src/store/store.ts";

export interface HeldSwap {
  readonly wrapStore: (store: ObjectStore) => ObjectStore;
  /** Such a swap was asked for, and waits before it is made. */
  readonly reached: Promise<void>;
  release(): void;
}

/** A store in which the first change of a cell that fits waits until it is let go. */
export function heldSwap(fits: (key: string, record: Readonly<Record<string, unknown>>) => boolean): HeldSwap {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let seen = false;
  return {
    reached: reached.promise,
    release: released.resolve,
    wrapStore: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name);
          if (name !== "swapCell") return typeof value === "function" ? (value.bind(target) as unknown) : value;
          const swapCell: ObjectStore["swapCell"] = async (key, expected, body) => {
            if (!seen && key.endsWith(".json") && fits(key, parsed(body))) {
              seen = true;
              reached.resolve();
              await released.promise;
            }
            return await target.swapCell(key, expected, body);
          };
          return swapCell;
        },
      }),
  };
}

function parsed(body: Uint8Array): Record<string, unknown> {
  return JSON.parse(Buffer.from(body).toString("utf8")) as Record<string, unknown>;
}
