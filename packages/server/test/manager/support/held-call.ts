import type { Chunks, ObjectStore } from "../../../src/store/store.ts";

/** A store in which one call waits until it is let go. */
interface HeldCall {
  readonly wrapStore: (store: ObjectStore) => ObjectStore;
  /** The call was made, and waits. */
  readonly reached: Promise<void>;
  release(): void;
}

/** The n-th write of an object whose name fits waits, after its first bytes. */
export function heldWrite(pattern: RegExp, turn = 1): HeldCall {
  let seen = 0;
  return heldCall("write", (write, hold) => (key, chunks, options) => {
    const holds = pattern.test(key) && ++seen === turn;
    return write(key, holds ? slowly(chunks, hold) : chunks, options);
  });
}

type Fits = (key: string, record: Readonly<Record<string, unknown>>) => boolean;

/** The first change of a cell that fits waits, before it is made or with its answer. */
export function heldSwap(fits: Fits, when: "before" | "after" = "before"): HeldCall {
  let seen = false;
  return heldCall("swapCell", (swapCell, hold) => async (key, expected, body) => {
    const holds = !seen && key.endsWith(".json") && fits(key, parsed(body));
    seen ||= holds;
    if (holds && when === "before") await hold();
    const swapped = await swapCell(key, expected, body);
    if (holds && when === "after") await hold();
    return swapped;
  });
}

/** `around` makes another call of a store's, which may `hold` where it is. */
function heldCall<Name extends "write" | "swapCell">(
  held: Name,
  around: (call: ObjectStore[Name], hold: () => Promise<void>) => ObjectStore[Name],
): HeldCall {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const hold = async (): Promise<void> => {
    reached.resolve();
    await released.promise;
  };
  return {
    reached: reached.promise,
    release: released.resolve,
    wrapStore: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name);
          const bound = typeof value === "function" ? (value.bind(target) as unknown) : value;
          return name === held ? around(bound as ObjectStore[Name], hold) : bound;
        },
      }),
  };
}

async function* slowly(chunks: Chunks, hold: () => Promise<void>): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    yield chunk;
    await hold();
  }
}

function parsed(body: Uint8Array): Record<string, unknown> {
  return JSON.parse(Buffer.from(body).toString("utf8")) as Record<string, unknown>;
}
