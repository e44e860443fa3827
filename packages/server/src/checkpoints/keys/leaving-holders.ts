import type { ObjectStore } from "../../store/store.ts";
import type { StoredDataKey } from "./data-key-cell.ts";
import { changeDataKey, removeDataKey } from "./data-key-files.ts";

/**
 * A holder without images under a data key leaves it in two steps, because it may be writing one. First it is marked. A
 * holder that was marked before its images were searched, and has none, is removed if the cell is unchanged: had it
 * written one, it would have removed the mark, or the image would have been seen.
 */
export async function markLeaving(store: ObjectStore, { id }: StoredDataKey, who: ReadonlySet<string>): Promise<void> {
  await changeDataKey(store, id, (cell) => {
    const marked = cell.leaving ?? [];
    const added = cell.holders.filter((holder) => who.has(holder) && !marked.includes(holder));
    return added.length === 0 ? undefined : { ...cell, leaving: [...marked, ...added] };
  });
}

/** `read` is the cell from before the search. The last holder takes the key with it; then true. */
export async function releaseLeaving(
  store: ObjectStore,
  read: StoredDataKey,
  who: ReadonlySet<string>,
): Promise<boolean> {
  const after = await changeDataKey(store, read.id, (cell) => {
    if (cell.nonce !== read.nonce) return undefined;
    const marked = new Set(cell.leaving?.filter((holder) => who.has(holder)));
    const holders = cell.holders.filter((holder) => !marked.has(holder));
    const leaving = cell.leaving?.filter((holder) => !marked.has(holder)) ?? [];
    return { ...cell, holders, leaving, state: holders.length === 0 ? "removed" : "kept" };
  });
  if (after?.state === "kept") return false;
  await removeDataKey(store, read.id);
  return true;
}
