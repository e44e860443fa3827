import { SandboxerError } from "@sandboxer/protocol";
import { AmbiguousWriteError, type ObjectStore } from "../store/store.ts";
import { isStoreFailure } from "../support/record-damage.ts";
import type { StoreRequest } from "./core/effects.ts";
import type { ListedRecord, Reply } from "./core/messages.ts";
import { encodeHead } from "./head-codec.ts";
import { decodeRecord, encodeRecord, instanceIdOf, instanceKey, INSTANCES_FOLDER } from "./liveness-record.ts";
import { headKey, readStoredRecord } from "./stored-head.ts";
import { noteEpoch } from "./seen-epochs.ts";

/** Carries out a request of the core. Never rejects: every outcome is a reply. */
export async function performRequest(store: ObjectStore, request: StoreRequest): Promise<Reply> {
  try {
    return await perform(store, request);
  } catch (error) {
    if (error instanceof AmbiguousWriteError) return { outcome: "ambiguous" };
    return { outcome: "failed", error, permanent: !isStoreFailure(error) };
  }
}

/** The reply if the store did not answer in time: a write may still be applied. */
export function replyOfSilence(request: StoreRequest): Reply {
  if (request.kind === "swap-head" || request.kind === "swap-record") return { outcome: "ambiguous" };
  const error = new SandboxerError("store_unavailable", "The store did not answer in time.");
  return { outcome: "failed", error, permanent: false };
}

/** If the store vanished, the outcome of a concurrent write is unknown. */
async function confirmed(store: ObjectStore): Promise<void> {
  try {
    await store.verify?.();
  } catch (error) {
    throw new AmbiguousWriteError("its marker", error);
  }
}

async function perform(store: ObjectStore, request: StoreRequest): Promise<Reply> {
  switch (request.kind) {
    case "read-head": {
      const record = await readStoredRecord(store, request.sandboxId);
      return record === undefined ? { outcome: "absent" } : { outcome: "head", ...record };
    }
    case "swap-head": {
      const { sandboxId, expected, next } = request;
      const swapped = await store.swapCell(headKey(sandboxId), expected, encodeHead(next));
      if (swapped.outcome === "written") noteEpoch(store, sandboxId, next.epoch);
      return swapped;
    }
    case "read-record": {
      const cell = await store.readCell(instanceKey(request.instanceId));
      if (cell === undefined) return { outcome: "absent" };
      return { outcome: "record", record: decodeRecord(cell.body), version: cell.version };
    }
    case "swap-record": {
      // Each renewal also checks that this is still the same store.
      const swap = store.swapCell(instanceKey(request.instanceId), request.expected, encodeRecord(request.next));
      return (await Promise.all([swap, confirmed(store)]))[0];
    }
    case "list-records": {
      const records: ListedRecord[] = [];
      for await (const { key, mark, sizeBytes } of store.listMarks(INSTANCES_FOLDER))
        records.push({ instanceId: instanceIdOf(key), mark, sizeBytes });
      return { outcome: "list", records };
    }
  }
}
