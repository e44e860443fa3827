import type { ObjectStore } from "../../store/store.ts";
import { type StoredDataKey, wrappedFolder, wrappedKey } from "./data-key-cell.ts";
import { dataKeyGone, readDataKey, readWrapped, removeDataKey, serverKeyOf, unwrapWith } from "./data-key-files.ts";
import type { MasterKeys } from "./master-keys.ts";

/**
 * Removes what an old key could open of a data key that is under another one now: what it was under before, and what a
 * rotation that was cut short has left under one of the old keys. Under any other key it may be another rotation's.
 */
export async function removeOldWrapped(
  store: ObjectStore,
  masters: MasterKeys,
  { id, fingerprint }: StoredDataKey,
  before: string,
): Promise<void> {
  const found = new Set(await Array.fromAsync(store.list(wrappedFolder(id)), ({ key }) => key));
  const old = new Set([before, ...(await oldFingerprints(masters))]);
  for (const each of old) {
    if (each !== fingerprint && found.has(wrappedKey(id, each))) await removeOne(store, masters, id, each);
  }
}

async function oldFingerprints(masters: MasterKeys): Promise<readonly string[]> {
  const found = await Promise.allSettled(
    masters.oldNames.map(async (name) => (await masters.resolve(name)).fingerprint),
  );
  return found.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
}

/** Never the last one: what the cell names is there and can be opened, before and after. */
async function removeOne(store: ObjectStore, masters: MasterKeys, id: string, fingerprint: string): Promise<void> {
  const cell = await readDataKey(store, id);
  if (cell === undefined || cell.state === "removed" || cell.fingerprint === fingerprint) return;
  const named = await readWrapped(store, cell);
  if (named === undefined) throw dataKeyGone(id);
  unwrapWith(await serverKeyOf(masters, cell), id, named);
  const old = await readWrapped(store, { id, fingerprint });
  if (old === undefined) return;
  await store.delete(wrappedKey(id, fingerprint));
  // A rotation the other way round may have come back to it between the look and the removal.
  if ((await readDataKey(store, id))?.fingerprint !== fingerprint) return;
  await store.write(wrappedKey(id, fingerprint), [old]);
  const after = await readDataKey(store, id);
  if (after === undefined || after.state === "removed") await removeDataKey(store, id);
}
