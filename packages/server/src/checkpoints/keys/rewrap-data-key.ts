import { SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../../store/store.ts";
import { newBlobName, type StoredDataKey, wrappedKey } from "./data-key-cell.ts";
import { changeDataKey, readWrapped } from "./data-key-files.ts";
import type { MasterKey } from "./master-key.ts";

export interface NewWrapping {
  /** The fingerprint of the master key. */
  readonly name: string;
  readonly master: MasterKey;
  readonly bytes: Uint8Array;
}

/**
 * Encrypts a data key with another master key, and lets the cell name the new blob: under a name of its own, announced
 * before it exists, read back before it counts. So a blob that a cell no longer names or announces is never named
 * again, and may be removed at any time. Returns the resulting cell; if two run, one is first, and the other sees it.
 */
export async function rewrapDataKey(
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
  // Removed after its announcement was withdrawn, or damaged: nothing changes either way.
  if (written !== undefined && master.unwrap(id, written)?.equals(bytes) !== true) throw notWhatWasWritten(id);
  const after = await changeIfNamed(store, read, (cell) =>
    isAnnounced(cell, wrapped) && written !== undefined
      ? { ...cell, format: 2, key: name, fingerprint, wrapped, announced: [] }
      : undefined,
  );
  if (after === undefined || after.wrapped !== wrapped) await store.delete(wrappedKey(blob));
  return after;
}

/** Only while the cell names the same blob as when it was read, and the key is not being removed. */
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
