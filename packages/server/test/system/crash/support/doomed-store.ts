import { openStore as openRealStore, type StoreOptions } from "../../../../src/store/open-store.ts";
import type { Chunks, ObjectStore } from "../../../../src/store/store.ts";
import { headIn, STEPS, type Step, type StepName, type StoreCall } from "./steps.ts";

/** Replaces the server's own `openStore`: the process kills or stops itself at the given step. */
export async function openStore(address: string, options?: StoreOptions): Promise<ObjectStore> {
  const { SANDBOXER_TEST_STEP: name, SANDBOXER_TEST_SIGNAL: signal } = process.env;
  // The kernel carries it out before the call returns: as if the power had gone, or the machine had stalled.
  const hit = (): void => void process.kill(process.pid, signal);
  return doomed(await openRealStore(address, options), STEPS[name as StepName], hit);
}

function doomed(store: ObjectStore, step: Step, hit: () => void): ObjectStore {
  const look = (moment: Step["moment"], call: StoreCall): void => {
    if (step.moment === moment && step.isAt(call)) hit();
  };
  async function* aroundEach<Item>(call: StoreCall, items: AsyncIterable<Item>): AsyncIterable<Item> {
    yield* items;
    look("after", call);
  }
  async function* within(call: StoreCall, chunks: Chunks): AsyncIterable<Uint8Array> {
    for await (const chunk of chunks) {
      yield chunk;
      look("within", call);
    }
  }
  const overrides: Partial<ObjectStore> = {
    readCell: async (key) => {
      const cell = await store.readCell(key);
      look("after", { operation: "readCell", key, head: headIn(key, cell?.body) });
      return cell;
    },
    swapCell: async (key, expected, body) => {
      const call: StoreCall = { operation: "swapCell", key, head: headIn(key, body) };
      look("before", call);
      const result = await store.swapCell(key, expected, body);
      if (result.outcome === "written") look("after", call);
      return result;
    },
    list: (folder) => {
      look("before", { operation: "list", key: folder });
      return store.list(folder);
    },
    read: (key, options) => aroundEach({ operation: "read", key }, store.read(key, options)),
    write: async (key, chunks, options) => {
      const call: StoreCall = { operation: "write", key };
      const written = await store.write(key, within(call, chunks), options);
      look("after", call);
      return written;
    },
    writeText: async (key, text) => {
      await store.writeText(key, text);
      look("after", { operation: "writeText", key });
    },
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name in overrides) return Reflect.get(overrides, name) as unknown;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
