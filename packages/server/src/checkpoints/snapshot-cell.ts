import { randomUUID } from "node:crypto";
import { type ObjectStore, trySwap } from "../store/store.ts";
import { encodeCell, successor, decodeSnapshot, recordKey } from "./snapshot-record.ts";
import type { Nonced, StoredSnapshot } from "./snapshot-record.ts";

export interface CellChange<T extends Nonced> {
  readonly key: string;
  readonly decode: (body: Uint8Array) => T;
  /**
   * The new content of the cell except for its nonces, given the current one; undefined: unchanged. Called again
   * whenever another writer was faster; throws to give up.
   */
  readonly change: (present: T | undefined) => T | undefined;
}

export interface ChangedCell<T> {
  /** The content before the change. */
  readonly before: T | undefined;
  /** The content that was written or left unchanged; undefined if there is none. */
  readonly after: T | undefined;
}

/**
 * Changes a cell with any number of concurrent writers. A swap whose answer was lost may have been applied, and another
 * writer may have followed: the nonces show it.
 */
export async function changeCell<T extends Nonced>(
  store: ObjectStore,
  { key, decode, change }: CellChange<T>,
): Promise<ChangedCell<T>> {
  const nonce = randomUUID();
  let sent: ChangedCell<T> | undefined;
  for (;;) {
    const cell = await store.readCell(key);
    const before = cell === undefined ? undefined : decode(cell.body);
    if (sent !== undefined && before !== undefined && [before.nonce, ...before.history].includes(nonce)) return sent;
    const wanted = change(before);
    if (wanted === undefined) return { before, after: before };
    const after = successor(before, wanted, nonce);
    const { outcome } = await trySwap(store, key, cell?.version, encodeCell(after));
    if (outcome === "written") return { before, after };
    if (outcome === "ambiguous") sent = { before, after };
  }
}

/** As {@link changeCell}, for the record of a snapshot. */
export async function changeSnapshot(
  store: ObjectStore,
  id: string,
  change: CellChange<StoredSnapshot>["change"],
): Promise<ChangedCell<StoredSnapshot>> {
  return await changeCell(store, { key: recordKey(id), decode: (body) => decodeSnapshot(id, body), change });
}
