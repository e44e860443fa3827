import { SandboxerError } from "@sandboxer/protocol/errors";
import { expect, it } from "vitest";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { probeStore } from "../../src/store/probe.ts";
import { AmbiguousWriteError, type ObjectStore, type SwapOutcome } from "../../src/store/store.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { meanwhile } from "../../../../test/kit/meanwhile.ts";

type Swap = ObjectStore["swapCell"];
type Read = ObjectStore["readCell"];

/** A store whose swaps are broken in one way, as stores in the field are. */
async function brokenStore(
  breakSwap: (swap: Swap, store: ObjectStore) => Swap,
  breakRead: (read: Read) => Read = (read) => read,
): Promise<ObjectStore> {
  const store = await DirectoryStore.open(await temporaryFolder());
  const swap = breakSwap(store.swapCell.bind(store), store);
  const read = breakRead(store.readCell.bind(store));
  return new Proxy<ObjectStore>(store, {
    get: (target, property) => {
      if (property === "swapCell") return swap;
      if (property === "readCell") return read;
      const value: unknown = Reflect.get(target, property);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

async function overwrite(store: ObjectStore, swap: Swap, key: string, body: Uint8Array): Promise<SwapOutcome> {
  for (;;) {
    const result = await swap(key, (await store.readCell(key))?.version, body);
    if (result.outcome === "written") return result;
  }
}

it("refuses a store that ignores conditions", async () => {
  const store = await brokenStore(
    (swap, inner) => async (key, _expected, body) => await overwrite(inner, swap, key, body),
  );
  await expect(probeStore(store, "hint")).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("created again") as unknown,
  });
});

it("refuses a store that honours creation only", async () => {
  const store = await brokenStore(
    (swap, inner) => async (key, expected, body) =>
      expected === undefined ? await swap(key, expected, body) : await overwrite(inner, swap, key, body),
  );
  await expect(probeStore(store, "hint")).rejects.toThrow("at an old version");
});

it.each([4, 16])("finds with %i racing writers that a store checks and then writes", async (racers) => {
  const store = await brokenStore((swap, inner) => async (key, expected, body) => {
    const present = await inner.readCell(key);
    if (present?.version !== expected) return { outcome: "conflict" };
    await meanwhile(5);
    return await overwrite(inner, swap, key, body);
  });
  await expect(probeStore(store, "hint", racers)).rejects.toThrow("racing writers");
});

it("refuses a store that cannot be written", async () => {
  const store = await brokenStore(() => async () => await Promise.reject(new Error("403 Forbidden")));
  await expect(probeStore(store, "hint")).rejects.toThrow("403 Forbidden");
});

it("accepts a store whose answers to a write and to the read after it are lost", async () => {
  let swaps = 0;
  let reads = 0;
  const store = await brokenStore(
    (swap) => async (key, expected, body) => {
      const result = await swap(key, expected, body);
      if (++swaps === 1) throw new AmbiguousWriteError(key, new Error("no answer"));
      return result;
    },
    (read) => async (key) => {
      if (++reads === 1) throw new SandboxerError("store_unavailable", "no answer within 5 s.");
      return await read(key);
    },
  );
  await probeStore(store, "hint");
  expect(swaps).toBeGreaterThan(1);
});
