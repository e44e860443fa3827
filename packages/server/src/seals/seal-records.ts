import { asSandboxerError } from "@sandboxer/protocol";
import { isRecord } from "./sealed-store.ts";
import type { ObjectStore } from "../store/store.ts";
import { jsonOf } from "../support/json.ts";
import { isStoreFailure } from "../support/record-damage.ts";
import type { RecordSeals } from "./record-seals.ts";

export interface Sealing {
  /** Sealed with the current key now, or to be. */
  readonly sealed: number;
  /** Already sealed with the current key. */
  readonly current: number;
  /** Records of live servers, which only they may change. A server with the key seals its own. */
  readonly of_living_servers: number;
  readonly failed: readonly { readonly record: string; readonly error: string; readonly message: string }[];
}

/**
 * Seals every record of a store with the current key, unchanged: the caller trusts the contents of the store. `store`
 * seals on write. Servers may use the store; a record that changes meanwhile was sealed by its writer.
 */
export async function sealRecords(
  store: ObjectStore,
  seals: RecordSeals,
  { apply, signal }: { readonly apply: boolean; readonly signal?: AbortSignal },
): Promise<Sealing> {
  const counts = { sealed: 0, current: 0, of_living_servers: 0 };
  const failed: { record: string; error: string; message: string }[] = [];
  for await (const { key } of store.list("")) {
    signal?.throwIfAborted();
    if (!isRecord(key)) continue;
    try {
      counts[await sealRecord(store, seals, key, apply)] += 1;
    } catch (thrown) {
      if (isStoreFailure(thrown)) throw thrown;
      const error = asSandboxerError(thrown);
      failed.push({ record: key, error: error.code, message: error.message });
    }
  }
  return { ...counts, failed };
}

async function sealRecord(
  store: ObjectStore,
  seals: RecordSeals,
  key: string,
  apply: boolean,
): Promise<"sealed" | "current" | "of_living_servers"> {
  const cell = await store.readCell(key);
  const record = cell === undefined ? undefined : jsonOf(cell.body);
  // It was removed meanwhile, or is not a record.
  if (cell === undefined || typeof record !== "object" || record === null) return "current";
  if (seals.isPresent(key, record)) return "current";
  // A live server would take the change of its record for its end.
  if (key.startsWith("instances/") && (record as { dead?: unknown }).dead !== true) return "of_living_servers";
  if (apply) await store.swapCell(key, cell.version, cell.body);
  return "sealed";
}
