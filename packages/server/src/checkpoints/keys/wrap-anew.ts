import { SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../../store/store.ts";
import { newBlobName, type StoredDataKey, wrappedKey } from "./data-key-cell.ts";
import { changeDataKey, readWrapped } from "./data-key-files.ts";
import type { MasterKey } from "./master-key.ts";

export interface NewWrapping {
  /** Of the master key. */
  readonly name: string;
  readonly master: MasterKey;
  readonly bytes: Uint8Array;
}

/**
 * Encrypts a data key with another master key, and lets the cell name that: under a name of its own, announced before
 * it is there, read back before it counts. So a blob that a cell has once ceased to name, or that is not announced any
 * more, is never named again, and whoever finds it may remove it at any time. Gives what the cell says then; of two who
 * do this one goes first, and the other one sees it.
 */
export async function wrapAnew(
  store: ObjectStore,
  read: StoredDataKey,
  { name, master, bytes }: NewWrapping,
): Promise<StoredDataKey | undefined> {
  const { id } = read;
  const { fingerprint } = master;
  const wrapped = newBlobName(fingerprint);
  const announced = await changeIfNamed(store, read, (cell) => ({
    ...cell,
    announced: [...(cell.announced ?? []), wrapped],
  }));
  if (!isAnnounced(announced, wrapped)) return announced;
  const blob = { id, fingerprint, wrapped };
  await store.write(wrappedKey(blob), [master.wrap(id, bytes)]);
  const written = await readWrapped(store, blob);
  // Removed by one who has taken back what was announced, or not what was written: nothing changes either way.
  if (written !== undefined && master.unwrap(id, written)?.equals(bytes) !== true) throw notWhatWasWritten(id);
  const after = await changeIfNamed(store, read, (cell) =>
    isAnnounced(cell, wrapped) && written !== undefined
      ? { ...cell, format: 2, key: name, fingerprint, wrapped, announced: [] }
      : undefined,
  );
  if (after === undefined || after.wrapped !== wrapped) await store.delete(wrappedKey(blob));
  return after;
}

/** Only while the cell names what it did when it was read, and the key is not going. */
export async function changeIfNamed(
  store: ObjectStore,
  read: StoredDataKey,
  change: (cell: StoredDataKey) => StoredDataKey | undefined,
): Promise<StoredDataKey | undefined> {
  return await changeDataKey(store, read.id, (cell) =>
    wrappedKey(cell) === wrappedKey(read) ? change(cell) : undefined,
  );
}

function isAnnounced(cell: StoredDataKey | undefined, wrapped: string): boolean {
  return cell?.announced?.includes(wrapped) === true;
}

function notWhatWasWritten(id: string): SandboxerError {
  return new SandboxerError(
    "image_damaged",
    `The data key ${id} was encrypted again, but reads back differently from what was written.`,
    {
      hint: "The key is unchanged. Check the store, then rotate again.",
      details: { data_key: id },
    },
  );
}
