import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import { Instances, type InstancesOptions } from "../../src/lease/instances.ts";
import { type Holding, Ownership } from "../../src/lease/ownership.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { systemClock } from "../../src/support/clock.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

/** An instance of its own, that ends with the test. */
export async function instance(store: ObjectStore, overrides: Partial<InstancesOptions> = {}): Promise<TestInstance> {
  const instances = await Instances.register({
    store,
    clock: systemClock,
    // On the real clock long enough for pauses of a busy machine; owners look for requests every fifteenth of it.
    ttlMs: overrides.clock === undefined ? 60_000 : 15_000,
    url: `http://${randomUUID()}.example`,
    onFenced: () => {},
    onError: () => {},
    ...overrides,
  });
  onTestFinished(() => instances.close());
  return Object.assign(new Ownership(instances), { instances, name: instances.instanceId });
}

/** A sandbox, as its owner at that epoch names it. */
export function at(id: string, epoch = 1): Holding {
  return { id, epoch };
}

export type TestInstance = Ownership & { readonly instances: Instances; readonly name: string };

/** They reach each other at once, as servers on a network do; by their bells alone they would hear of it seconds later. */
export async function twoInstances(): Promise<{
  a: TestInstance;
  b: TestInstance;
  store: ObjectStore;
  root: string;
  id: string;
}> {
  const root = await temporaryFolder();
  const store = await DirectoryStore.open(root);
  const ring = async (url: string, sandboxId: string): Promise<void> => {
    (url === "http://a" ? a : b).instances.rung(sandboxId);
  };
  const a = await instance(store, { url: "http://a", ring });
  const b = await instance(store, { url: "http://b", ring });
  return { a, b, store, root, id: randomUUID() };
}
