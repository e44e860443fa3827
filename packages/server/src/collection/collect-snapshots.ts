import {
  decodeSnapshotRecord,
  encodeSnapshotRecord,
  isSnapshotName,
  SNAPSHOT_HISTORY_LENGTH,
  SNAPSHOT_RECORD,
  snapshotKey,
  type SnapshotRecord,
  SNAPSHOTS_FOLDER,
} from "../checkpoints/snapshot-record.ts";
import { settleSwap } from "../lease/cell-swap.ts";
import type { ListedObject } from "../store/store.ts";
import { type CollectionContext, type Findings, type LeftAlone, leftAlone, NOTHING, together } from "./garbage.ts";
import type { Servers } from "./servers.ts";
import { mayBePublished } from "./snapshot-publishers.ts";
import { isStoreFailure } from "./store-failure.ts";

const IMAGE = /\/image_[0-9a-f-]{36}\.img$/;

interface PresentRecord {
  readonly record: SnapshotRecord;
  readonly version: string;
}

export async function collectSnapshots(context: CollectionContext, servers: Servers): Promise<Findings> {
  const parts: Findings[] = [];
  for await (const name of context.store.listFolders(SNAPSHOTS_FOLDER)) {
    if (isSnapshotName(name)) parts.push(await collectSnapshot(context, name, servers));
  }
  return together(parts);
}

/**
 * Images that the record does not name. Those that it named once can go at once. The others were saved and not published
 * yet, or never will be; before they go, the record says so, and so whoever is about to publish one after all fails at
 * that: its swap is of an older record, or of one that it has read.
 */
async function collectSnapshot(context: CollectionContext, name: string, servers: Servers): Promise<Findings> {
  const { store, apply } = context;
  const images: ListedObject[] = [];
  for await (const listed of store.list(snapshotKey(name, "").slice(0, -1)))
    if (IMAGE.test(listed.key)) images.push(listed);
  if (images.length === 0) return NOTHING;
  const present = await readRecord(context, name);
  if ("left" in present) return present;
  const { record } = present;

  const named = snapshotKey(name, record.image);
  const past = new Set([...record.history, ...(record.collected ?? [])].map((image) => snapshotKey(name, image)));
  const superseded = images.filter(({ key }) => key !== named && past.has(key));
  const abandoned: ListedObject[] = [];
  const left: LeftAlone[] = [];
  for (const image of images) {
    if (image.key === named || past.has(image.key)) continue;
    if (await mayBePublished(store, image.key, servers))
      left.push({ key: image.key, reason: "a save may be under way" });
    else abandoned.push(image);
  }
  // The rest goes the next time.
  const condemned = abandoned.slice(0, SNAPSHOT_HISTORY_LENGTH);
  if (apply && condemned.length > 0 && !(await condemn(context, name, present, condemned))) {
    return leftAlone(snapshotKey(name, SNAPSHOT_RECORD), "taken up meanwhile");
  }
  const gone = [...superseded, ...condemned];
  if (apply) for (const { key } of gone) await store.delete(key);
  return { garbage: gone.map(({ key, sizeBytes }) => ({ kind: "snapshot-image", key, sizeBytes })), left };
}

/** Without a record there is nothing that a first save would have to get past. */
async function readRecord({ store }: CollectionContext, name: string): Promise<PresentRecord | Findings> {
  const key = snapshotKey(name, SNAPSHOT_RECORD);
  const cell = await store.readCell(key);
  if (cell === undefined) return leftAlone(key, "a save may be under way");
  try {
    return { record: decodeSnapshotRecord(name, cell.body), version: cell.version };
  } catch (error) {
    if (isStoreFailure(error)) throw error;
    return leftAlone(key, "its record cannot be read");
  }
}

/** False when the record has changed. */
async function condemn(
  { store, clock, signal }: CollectionContext,
  name: string,
  { record, version }: PresentRecord,
  images: readonly ListedObject[],
): Promise<boolean> {
  const names = images.map(({ key }) => key.slice(snapshotKey(name, "").length));
  const collected = [...names, ...(record.collected ?? [])].slice(0, SNAPSHOT_HISTORY_LENGTH);
  const settled = await settleSwap(store, clock, {
    key: snapshotKey(name, SNAPSHOT_RECORD),
    expected: version,
    body: encodeSnapshotRecord({ ...record, collected }),
    isOurs: ({ body }) => {
      const found = decodeSnapshotRecord(name, body).collected ?? [];
      return names.every((each) => found.includes(each));
    },
    ...(signal === undefined ? {} : { signal }),
  });
  return settled.outcome === "written";
}
