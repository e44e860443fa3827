import { decodeRecord, INSTANCES_FOLDER, instanceIdOf, instanceKey } from "../lease/liveness-record.ts";
import type { ObjectStore } from "../store/store.ts";
import { unlessDamaged } from "../support/record-damage.ts";

/** Servers by their records: dead ones, which is final, and all others. A server without a record is in neither set. */
export interface Servers {
  readonly dead: ReadonlySet<string>;
  readonly living: ReadonlySet<string>;
}

export async function readServers(store: ObjectStore): Promise<Servers> {
  const [dead, living] = [new Set<string>(), new Set<string>()];
  for await (const key of store.listCells(INSTANCES_FOLDER)) {
    const instanceId = instanceIdOf(key);
    const cell = await store.readCell(instanceKey(instanceId)).catch(unlessDamaged);
    if (cell === undefined) continue;
    // An unreadable record counts as alive.
    const isDead = cell !== "damaged" && decodeRecord(cell.body)?.dead === true;
    (isDead ? dead : living).add(instanceId);
  }
  return { dead, living };
}

/** A server without a record before may have registered since; then it has one now. */
export async function isGone(store: ObjectStore, { dead, living }: Servers, instanceId: string): Promise<boolean> {
  if (dead.has(instanceId)) return true;
  return !living.has(instanceId) && (await store.readCell(instanceKey(instanceId))) === undefined;
}
