import { SandboxerError } from "@sandboxer/protocol";
import { type ObjectStore, readWhole } from "../../store/store.ts";
import { dataKeyCell, decodeDataKey, isDataKeyId, wrappedFolder, wrappedKey } from "./data-key-cell.ts";
import type { NamedBlob, StoredDataKey } from "./data-key-cell.ts";
import { keyUnavailable, wrongKey } from "./key-errors.ts";
import type { MasterKey } from "./master-key.ts";
import { type MasterKeys, presentName } from "./master-keys.ts";
import { changeCell } from "../snapshot-cell.ts";

export async function readDataKey(store: ObjectStore, keyId: string): Promise<StoredDataKey | undefined> {
  if (!isDataKeyId(keyId)) return undefined;
  const cell = await store.readCell(dataKeyCell(keyId));
  return cell === undefined ? undefined : decodeDataKey(keyId, cell.body);
}

/** Changes the record of a data key; an unchanged or removed one stays as it is. */
export async function changeDataKey(
  store: ObjectStore,
  id: string,
  change: (cell: StoredDataKey) => StoredDataKey | undefined,
): Promise<StoredDataKey | undefined> {
  const { after } = await changeCell<StoredDataKey>(store, {
    key: dataKeyCell(id),
    decode: (body) => decodeDataKey(id, body),
    change: (cell) => (cell === undefined || cell.state === "removed" ? undefined : change(cell)),
  });
  return after;
}

/** The key blob first: from then on nothing can be read. The cell says until the end that it is being removed. */
export async function removeDataKey(store: ObjectStore, keyId: string): Promise<void> {
  await store.deleteTree(wrappedFolder(keyId));
  await store.deleteCell(dataKeyCell(keyId));
}

/** The key of that fingerprint: by its name, or any other. */
export async function serverKeyOf(
  masters: MasterKeys,
  { key, fingerprint }: Pick<StoredDataKey, "id" | "key" | "fingerprint">,
): Promise<MasterKey> {
  const names = new Set([key, presentName(masters, key), ...masters.oldNames]);
  let other: { readonly name: string; readonly fingerprint: string } | undefined;
  let failure: unknown;
  for (const name of names) {
    try {
      const master = await masters.resolve(name);
      if (master.fingerprint === fingerprint) return master;
      // A mismatch of another key means nothing.
      if (name === key) other = { name, fingerprint: master.fingerprint };
    } catch (error) {
      failure ??= error;
    }
  }
  if (other !== undefined) throw wrongKey(fingerprint, other.fingerprint, `this server's "${other.name}"`);
  const why = failure instanceof Error ? ` ${failure.message}` : "";
  throw keyUnavailable(`The data is encrypted with the key "${key}" (${fingerprint}).${why}`, { key, fingerprint });
}

export function unwrapWith(master: MasterKey, keyId: string, wrapped: Uint8Array): Buffer {
  const bytes = master.unwrap(keyId, wrapped);
  if (bytes !== undefined) return bytes;
  throw new SandboxerError("image_damaged", `The data key ${keyId} does not decrypt with ${master.fingerprint}.`, {
    hint: "Restore the file from a backup: data that is encrypted with this key cannot be read without it.",
    details: { data_key: keyId, fingerprint: master.fingerprint },
  });
}

export async function readWrapped(store: ObjectStore, blob: NamedBlob): Promise<Buffer | undefined> {
  return await readWhole(store, wrappedKey(blob), { end: 1024 });
}

export function dataKeyGone(keyId: string): SandboxerError {
  return new SandboxerError("image_damaged", `Its data key ${keyId} is no longer in the store.`, {
    hint: "Data encrypted with it can no longer be read: the key was removed with the last sandbox or snapshot that used it.",
    details: { data_key: keyId },
  });
}
