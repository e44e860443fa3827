import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../../store/store.ts";
import { dataKeyIdOf, DATA_KEYS_FOLDER, type StoredDataKey, wrappedFolder, wrappedKey } from "./data-key-cell.ts";
import type { MasterKey } from "./master-key.ts";
import { type MasterKeys, presentName } from "./master-keys.ts";
import { dataKeyGone, readDataKey, readWrapped, removeDataKey, serverKeyOf, unwrapWith } from "./data-key-files.ts";
import { changeIfNamed, rewrapDataKey } from "./rewrap-data-key.ts";

export interface RotateOptions {
  /** False: only report what would be done. */
  readonly apply: boolean;
  readonly signal?: AbortSignal;
}

export interface Rotation {
  /** Encrypted with the current key now, or to be. */
  readonly rewrapped: number;
  /** Already encrypted with the current key. */
  readonly current: number;
  /** Under clients' keys, which this server does not have. */
  readonly client_held: number;
  readonly failed: readonly { readonly data_key: string; readonly error: string; readonly message: string }[];
}

/**
 * Re-encrypts every data key with the current master key. Images stay unchanged. Work that is done stays done, so an
 * interrupted rotation is finished by the next; servers may use the store. If two rotations to different keys run, one
 * gets each data key, and the other fails for it unless it knows that key.
 */
export async function rotateDataKeys(
  store: ObjectStore,
  masters: MasterKeys,
  { apply, signal }: RotateOptions,
): Promise<Rotation> {
  const counts = { rewrapped: 0, current: 0, client_held: 0 };
  const failed: { data_key: string; error: string; message: string }[] = [];
  const present = new Map<string, Promise<MasterKey>>();
  for await (const key of store.listCells(DATA_KEYS_FOLDER)) {
    signal?.throwIfAborted();
    const id = dataKeyIdOf(key);
    if (id === undefined) continue;
    try {
      const cell = await readDataKey(store, id);
      if (cell === undefined || cell.state === "removed") continue;
      counts[await rotate(store, masters, cell, present, apply)] += 1;
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      if (error.code === "store_unavailable" || error.code === "internal") throw thrown;
      failed.push({ data_key: id, error: error.code, message: error.message });
    }
  }
  return { ...counts, failed };
}

async function rotate(
  store: ObjectStore,
  masters: MasterKeys,
  cell: StoredDataKey,
  present: Map<string, Promise<MasterKey>>,
  apply: boolean,
): Promise<"rewrapped" | "current" | "client_held"> {
  if (cell.held_by === "client") return "client_held";
  const { id } = cell;
  if (masters.defaultName === undefined && masters.oldNames.includes(cell.key)) throw noPresentKey(cell.key);
  const name = presentName(masters, cell.key);
  const resolving = present.get(name) ?? masters.resolve(name);
  present.set(name, resolving);
  const master = await resolving;
  const { fingerprint } = master;
  const isCurrent = cell.fingerprint === fingerprint;
  const old = isCurrent ? master : await serverKeyOf(masters, cell);
  const wrapped = await readWrapped(store, cell);
  if (wrapped === undefined) {
    const again = await movedOn(store, cell);
    return again === undefined ? "current" : await rotate(store, masters, again, present, apply);
  }
  const bytes = unwrapWith(old, id, wrapped);
  if (!apply) return isCurrent ? "current" : "rewrapped";
  const after = isCurrent ? await rename(store, cell, name) : await rewrapDataKey(store, cell, { name, master, bytes });
  // The key was removed meanwhile: then the new blob is removed too, so that nothing can be read.
  if (after === undefined || after.state === "removed") await removeDataKey(store, id);
  // Another rotation was faster. If it used another key, that one counts, and must be known here to continue.
  else if (after.fingerprint !== fingerprint) return await rotate(store, masters, after, present, apply);
  else await removeOldWrapped(store, masters, id);
  return isCurrent ? "current" : "rewrapped";
}

function noPresentKey(key: string): SandboxerError {
  return new SandboxerError("bad_request", `"${key}" is an old key, but there is no current one.`, {
    hint: "Set the new key in encryption_key.",
    details: { key },
  });
}

/** The current cell if the blob that it named is missing; undefined: the key was removed. */
async function movedOn(store: ObjectStore, cell: StoredDataKey): Promise<StoredDataKey | undefined> {
  const again = await readDataKey(store, cell.id);
  if (again === undefined || again.state === "removed") return undefined;
  if (wrappedKey(again) === wrappedKey(cell)) throw dataKeyGone(cell.id);
  return again;
}

/** The same key under its current name. */
async function rename(store: ObjectStore, read: StoredDataKey, name: string): Promise<StoredDataKey | undefined> {
  if (read.key === name) return read;
  return await changeIfNamed(store, read, (cell) => ({ ...cell, key: name }));
}

/**
 * Removes every form of a data key except the one that its cell names: earlier ones, and leftovers of interrupted
 * rotations. Announcements of others are withdrawn first, so that no cell can name their blobs any more; a rotation
 * that is still writing one sees that, and starts again. Nothing is removed unless the named one can be opened here.
 */
async function removeOldWrapped(store: ObjectStore, masters: MasterKeys, id: string): Promise<void> {
  const found = await Array.fromAsync(store.list(wrappedFolder(id)), ({ key }) => key);
  const read = await readDataKey(store, id);
  if (read === undefined || read.state === "removed") return;
  const hasOthers = found.some((key) => key !== wrappedKey(read)) || (read.announced ?? []).length > 0;
  if (!hasOthers) return;
  const cell = await changeIfNamed(store, read, (present) =>
    (present.announced ?? []).length === 0 ? undefined : { ...present, announced: [] },
  );
  // Another rotation came in between, and does this itself.
  if (cell === undefined || cell.state === "removed" || wrappedKey(cell) !== wrappedKey(read)) return;
  const named = await readWrapped(store, cell);
  if (named === undefined) {
    const again = await readDataKey(store, id);
    if (again !== undefined && wrappedKey(again) === wrappedKey(cell)) throw dataKeyGone(id);
    return;
  }
  unwrapWith(await serverKeyOf(masters, cell), id, named);
  for (const key of found) if (key !== wrappedKey(cell)) await store.delete(key);
}
