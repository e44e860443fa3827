import { INSTANCES_FOLDER, instanceIdOf, instanceKey } from "../lease/liveness-record.ts";
import type { ObjectStore } from "../store/store.ts";
import type { CollectionContext, Findings, Garbage, LeftAlone } from "./garbage.ts";
import { isGone, type Servers } from "./servers.ts";
import type { Survey } from "./survey.ts";

const BELLS_FOLDER = "bells";

/**
 * Records of dead servers that no head names, and the bells of those who are gone. The records were read before the heads:
 * a dead server begins nothing new, and a claim that it sent before and that arrives late names a server without a record,
 * which is dead to everybody.
 */
export async function collectServers(
  context: CollectionContext,
  { servers, survey }: { readonly servers: Servers; readonly survey: Survey },
): Promise<Findings> {
  const { store, apply } = context;
  const garbage: Garbage[] = [];
  const left: LeftAlone[] = [];
  const recordSizes = await sizesBelow(store, INSTANCES_FOLDER);
  for (const instanceId of servers.dead) {
    const key = instanceKey(instanceId);
    if (survey.namedServers.has(instanceId)) continue;
    if (survey.complete) garbage.push({ kind: "server-record", key, sizeBytes: recordSizes.get(key) ?? 0 });
    else left.push({ key, reason: "a head that cannot be read may name it" });
  }
  const bellSizes = await sizesBelow(store, BELLS_FOLDER);
  for await (const key of store.listCells(BELLS_FOLDER)) {
    if (await isGone(store, servers, instanceIdOf(`${INSTANCES_FOLDER}${key.slice(BELLS_FOLDER.length)}`))) {
      garbage.push({ kind: "bell", key, sizeBytes: bellSizes.get(key) ?? 0 });
    }
  }
  if (apply) for (const { key } of garbage) await store.deleteCell(key);
  return { garbage, left };
}

async function sizesBelow(store: ObjectStore, folder: string): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for await (const { key, sizeBytes } of store.list(folder)) sizes.set(key, sizeBytes);
  return sizes;
}
