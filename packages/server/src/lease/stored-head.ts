import type { Head } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import { recordDamaged } from "../support/record-damage.ts";
import { decodeRecord, type StoredRecord } from "./head-codec.ts";
import { noteEpoch, seenEpoch } from "./seen-epochs.ts";

export function headKey(sandboxId: string): string {
  return `${sandboxId}/metadata.json`;
}

export async function readStoredRecord(
  store: ObjectStore,
  sandboxId: string,
): Promise<{ readonly stored: StoredRecord; readonly version: string } | undefined> {
  const seen = seenEpoch(store, sandboxId);
  const cell = await store.readCell(headKey(sandboxId));
  if (cell === undefined) return undefined;
  const stored = decodeRecord(sandboxId, cell.body, cell.file);
  if ("head" in stored) {
    const { epoch } = stored.head;
    // Epochs never shrink: someone restored an old version, with its owner and its image.
    if (epoch < seen) {
      const why = `its epoch is ${epoch}, but this server has seen ${seen}: an old version was restored`;
      throw recordDamaged(cell.file ?? headKey(sandboxId), why);
    }
    noteEpoch(store, sandboxId, epoch);
  }
  return { stored, version: cell.version };
}

/** Undefined also for a folder that came without a head. */
export async function readHead(store: ObjectStore, sandboxId: string): Promise<Head | undefined> {
  const record = await readStoredRecord(store, sandboxId);
  return record !== undefined && "head" in record.stored ? record.stored.head : undefined;
}

/** Whether nothing is left of a sandbox that no server runs: it is never saved, and no provider keeps it. */
export function leavesNothing({ residence, checkpoint, flags }: Head): boolean {
  return residence !== "provider" && checkpoint === null && !flags.enable_checkpoint;
}

/** Whether a sandbox runs, or would have no state without the snapshot that it was created from. */
export function needsItsSnapshot({ state, owner, checkpoint }: Head): boolean {
  return state !== "deleted" && (owner !== null || checkpoint === null);
}
