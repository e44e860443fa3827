import type { ObjectStore } from "../../store/store.ts";
import { wrappedFolder, wrappedKey } from "./data-key-cell.ts";
import { dataKeyGone, readDataKey, readWrapped, serverKeyOf, unwrapWith } from "./data-key-files.ts";
import type { MasterKeys } from "./master-keys.ts";
import { changeDataKey } from "./wrap-anew.ts";

/**
 * Removes every form of a data key but the one that its cell names: what it was under before, and what rotations that
 * were cut short have left. What others announced is taken back before, so that no cell can come to name it any more;
 * one who is still writing it sees that, and begins anew. What is named can be opened here, or nothing is removed.
 */
export async function removeOldWrapped(store: ObjectStore, masters: MasterKeys, id: string): Promise<void> {
  const found = await Array.fromAsync(store.list(wrappedFolder(id)), ({ key }) => key);
  const read = await readDataKey(store, id);
  if (read === undefined || read.state === "removed") return;
  const hasOthers = found.some((key) => key !== wrappedKey(read)) || (read.announced ?? []).length > 0;
  if (!hasOthers) return;
  const cell = await changeDataKey(store, read, (present) =>
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
