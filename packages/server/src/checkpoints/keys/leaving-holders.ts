import type { ObjectStore } from "../../store/store.ts";
import { changeCell } from "../snapshot-cell.ts";
import { dataKeyCell, decodeDataKey, type StoredDataKey } from "./data-key-cell.ts";
import { removeDataKey } from "./data-key-files.ts";

/**
 * A holder that has no image under a data key any more leaves it in two steps, because it may be writing one. First it is
 * marked. Who was marked before one has looked for its images, and has none, goes while the cell is as it was then: had
 * it written one, it would have taken the mark off, or the image would have been seen.
 */
export async function markLeaving(store: ObjectStore, { id }: StoredDataKey, who: ReadonlySet<string>): Promise<void> {
  await change(store, id, (cell) => {
    const marked = cell.leaving ?? [];
    const added = cell.holders.filter((holder) => who.has(holder) && !marked.includes(holder));
    return added.length === 0 ? undefined : { ...cell, leaving: [...marked, ...added] };
  });
}

/** `read` is the cell from before the look. The last holder takes the key along; true then. */
export async function releaseLeaving(
  store: ObjectStore,
  read: StoredDataKey,
  who: ReadonlySet<string>,
): Promise<boolean> {
  const after = await change(store, read.id, (cell) => {
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

async function change(
  store: ObjectStore,
  keyId: string,
  changed: (cell: StoredDataKey) => StoredDataKey | undefined,
): Promise<StoredDataKey | undefined> {
  const { after } = await changeCell<StoredDataKey>(store, {
    key: dataKeyCell(keyId),
    decode: (body) => decodeDataKey(keyId, body),
    change: (cell) => (cell === undefined || cell.state === "removed" ? undefined : changed(cell)),
  });
  return after;
}
