import { SandboxerError } from "@sandboxer/protocol";
import { checkpointsFolder } from "../checkpoints/checkpoint-names.ts";
import {
  DATA_KEYS_FOLDER,
  dataKeyCell,
  dataKeyIdOf,
  isDataKeyId,
  type StoredDataKey,
  wrappedFolder,
} from "../checkpoints/keys/data-key-cell.ts";
import { dataKeyOfImage } from "../checkpoints/open-image.ts";
import { readDataKey, removeDataKey } from "../checkpoints/keys/data-key-files.ts";
import { markLeaving, releaseLeaving } from "../checkpoints/keys/leaving-holders.ts";
import { StoredDataKeys } from "../checkpoints/keys/stored-data-keys.ts";
import { recordKey, snapshotFolder } from "../checkpoints/snapshot-record.ts";
import { readStoredRecord } from "../lease/stored-head.ts";
import type { ObjectStore } from "../store/store.ts";
import { unlessDamaged } from "../support/record-damage.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { type CollectionContext, type Findings, leftAlone, NOTHING, together } from "./garbage.ts";
import { UnusedDataKeys } from "./unused-data-keys.ts";
import { isDamaged } from "../checkpoints/image-errors.ts";

const READS_AT_ONCE = 16;

/**
 * Removes data keys without holders: from then on nothing that was encrypted with one can be read. Most are removed at
 * once with their last holder; this removes those whose server was interrupted. A holder has its head or record before
 * it holds anything, and ids are never reused: a holder without either is deleted. A holder that exists but has no
 * image under the key any more is marked, and removed by a later collection. Holders in `going`, which a dry run only
 * predicts, count as deleted.
 */
export async function collectDataKeys(context: CollectionContext, going: ReadonlySet<string>): Promise<Findings> {
  const { store } = context;
  const ids = new Set<string>();
  // A cell is written before its files, and removed after them: files without a cell come from a writer that was too
  // late, or their cell was lost.
  for await (const id of store.listFolders(DATA_KEYS_FOLDER)) if (isDataKeyId(id)) ids.add(id);
  for await (const key of store.listCells(DATA_KEYS_FOLDER)) {
    const id = dataKeyIdOf(key);
    if (id !== undefined) ids.add(id);
  }
  // All cells before any image: the images of a holder are read later than its marks.
  const cells = new Map<string, StoredDataKey | undefined>();
  const parts: Findings[] = [];
  for (const id of ids) {
    context.signal?.throwIfAborted();
    const cell = await readCell(context, id);
    if (cell === "unreadable") parts.push(leftAlone(dataKeyCell(id), "its record cannot be read"));
    else cells.set(id, cell);
  }
  const unused = new UnusedDataKeys(context, [...cells.values()], going);
  let named: Promise<ReadonlySet<string>> | undefined;
  const isNamed = async (id: string): Promise<boolean> => {
    named ??= keysOfImages(context, going);
    return (await named).has(id);
  };
  for (const [id, cell] of cells) {
    context.signal?.throwIfAborted();
    parts.push(await collectDataKey(context, id, cell, { going, isNamed, unused }));
  }
  return together(parts);
}

/** The data keys of all images: every image is read, which only a lost cell justifies. */
async function keysOfImages(
  { store, signal }: CollectionContext,
  going: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const images: string[] = [];
  for await (const { key } of store.list("")) if (key.endsWith(".img") && !going.has(key)) images.push(key);
  const found = await mapAtOnce(images, READS_AT_ONCE, async (key) => await dataKeyOfImage(store, key), signal);
  return new Set(found.filter((id) => id !== undefined));
}

async function readCell({ store }: CollectionContext, id: string): Promise<StoredDataKey | "unreadable" | undefined> {
  try {
    return await readDataKey(store, id);
  } catch (error) {
    if (!isDamaged(error)) throw error;
    return "unreadable";
  }
}

interface KnownOfHolders {
  readonly going: ReadonlySet<string>;
  readonly isNamed: (id: string) => Promise<boolean>;
  readonly unused: UnusedDataKeys;
}

async function collectDataKey(
  context: CollectionContext,
  id: string,
  cell: StoredDataKey | undefined,
  { going, isNamed, unused }: KnownOfHolders,
): Promise<Findings> {
  const { store, apply } = context;
  if (cell === undefined && (await isNamed(id))) {
    return leftAlone(wrappedFolder(id), "its record is missing, and an image needs it");
  }
  const gone = new Set<string>();
  const leaving = new Set<string>();
  for (const holder of cell?.state === "kept" ? cell.holders : []) {
    if (await isGone(context, holder, going)) gone.add(holder);
    else if (cell !== undefined && (await unused.isUnused(cell, holder))) leaving.add(holder);
  }
  const marked = new Set(cell?.leaving?.filter((holder) => leaving.has(holder)));
  const isNeeded = cell?.state === "kept" && cell.holders.some((holder) => !gone.has(holder) && !marked.has(holder));
  if (isNeeded && gone.size === 0 && leaving.size === 0) return NOTHING;
  const sizeBytes = await sizeOf(context, id);
  if (apply && cell?.state !== "kept") await removeDataKey(store, id);
  // A new holder may have been added meanwhile.
  else if (apply && cell !== undefined && !(await removeHolders(store, cell, { gone, leaving, marked })))
    return NOTHING;
  return isNeeded ? NOTHING : { garbage: [{ kind: "data-key", key: dataKeyCell(id), sizeBytes }], left: [] };
}

/** True if the key was removed with them. */
async function removeHolders(
  store: ObjectStore,
  cell: StoredDataKey,
  { gone, leaving, marked }: Readonly<Record<"gone" | "leaving" | "marked", ReadonlySet<string>>>,
): Promise<boolean> {
  if (marked.size > 0 && (await releaseLeaving(store, cell, marked))) return true;
  if (gone.size > 0 && (await new StoredDataKeys(store).releaseAll(cell.id, (each) => gone.has(each)))) return true;
  if (leaving.size > marked.size) await markLeaving(store, cell, leaving);
  return false;
}

async function isGone({ store }: CollectionContext, holder: string, going: ReadonlySet<string>): Promise<boolean> {
  const [, kind, id = ""] = /^(sandbox|snapshot):([0-9a-f-]{36})$/.exec(holder) ?? [];
  if (kind === "snapshot") {
    const isGoing = going.values().some((key) => key.startsWith(`${snapshotFolder(id)}/`));
    return isGoing || (await store.readCell(recordKey(id)).catch(unlessDamaged)) === undefined;
  }
  if (kind !== "sandbox") return false;
  try {
    const record = await readStoredRecord(store, id);
    if (record !== undefined) return "head" in record.stored && record.stored.head.state === "deleted";
  } catch (error) {
    if (!(error instanceof SandboxerError)) throw error;
    return false;
  }
  // A folder that came without a head is a sandbox too.
  return (await Array.fromAsync(store.list(checkpointsFolder(id)))).length === 0;
}

async function sizeOf({ store }: CollectionContext, id: string): Promise<number> {
  let sizeBytes = 0;
  for await (const listed of store.list(wrappedFolder(id))) sizeBytes += listed.sizeBytes;
  return sizeBytes;
}
