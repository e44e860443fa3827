import { asSandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../../store/store.ts";
import { changeCell } from "../snapshot-cell.ts";
import {
  dataKeyCell,
  dataKeyIdOf,
  DATA_KEYS_FOLDER,
  decodeDataKey,
  type StoredDataKey,
  wrappedKey,
} from "./data-key-cell.ts";
import type { MasterKey } from "./master-key.ts";
import { type MasterKeys, presentName } from "./master-keys.ts";
import { readDataKey, readWrapped, removeDataKey, serverKeyOf, unwrapWith } from "./data-key-files.ts";

export interface RotateOptions {
  /** False: say what would be done. */
  readonly apply: boolean;
  readonly signal?: AbortSignal;
}

export interface Rotation {
  /** Encrypted with the present key now, or to be. */
  readonly rewrapped: number;
  /** Encrypted with the present key before. */
  readonly current: number;
  /** Under keys of clients, which this server does not have. */
  readonly client_held: number;
  readonly failed: readonly { readonly data_key: string; readonly error: string; readonly message: string }[];
}

/**
 * Encrypts every data key with the present value of its master key, instead of an older one. Images stay as they are.
 * What was done stays done, so that one that was cut short is finished by the next; servers may work on the store.
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
  const name = presentName(masters, cell.key);
  const resolving = present.get(name) ?? masters.resolve(name);
  present.set(name, resolving);
  const master = await resolving;
  const { fingerprint } = master;
  if (cell.fingerprint === fingerprint) {
    if (!apply) return "current";
    await removeOthers(store, id, fingerprint);
    if (cell.key !== name) await rename(store, cell, { name, fingerprint });
    return "current";
  }
  const old = await serverKeyOf(masters, cell);
  const wrapped = await readWrapped(store, cell);
  // Another one was faster, or it is gone.
  if (wrapped === undefined) return "current";
  const bytes = unwrapWith(old, id, wrapped);
  if (!apply) return "rewrapped";
  await store.write(wrappedKey(id, fingerprint), [master.wrap(id, bytes)]);
  const after = await rename(store, cell, { name, fingerprint });
  // It went meanwhile: then what was written goes too, so that nothing can be read.
  if (after === undefined || after.state === "removed") await removeDataKey(store, id);
  else await removeOthers(store, id, after.fingerprint);
  return "rewrapped";
}

async function rename(
  store: ObjectStore,
  { id }: StoredDataKey,
  { name, fingerprint }: { readonly name: string; readonly fingerprint: string },
): Promise<StoredDataKey | undefined> {
  const { after } = await changeCell<StoredDataKey>(store, {
    key: dataKeyCell(id),
    decode: (body) => decodeDataKey(id, body),
    change: (cell) =>
      cell === undefined || cell.state === "removed" ? undefined : { ...cell, key: name, fingerprint },
  });
  return after;
}

/** What one that was cut short has left: encrypted with a key that the cell does not name. */
async function removeOthers(store: ObjectStore, id: string, fingerprint: string): Promise<void> {
  const stays = wrappedKey(id, fingerprint);
  const found = await Array.fromAsync(store.list(`${DATA_KEYS_FOLDER}/${id}`), ({ key }) => key);
  for (const key of found) if (key !== stays) await store.delete(key);
}
