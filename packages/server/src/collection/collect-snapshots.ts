import { randomUUID } from "node:crypto";
import { SnapshotNames } from "../checkpoints/snapshot-names.ts";
import {
  decodeSnapshot,
  encodeCell,
  filesKey,
  imageKey,
  isSnapshotId,
  recordKey,
  SNAPSHOTS_FOLDER,
  type StoredSnapshot,
  successor,
} from "../checkpoints/snapshot-record.ts";
import { removeSnapshot } from "../checkpoints/snapshot-save.ts";
import { settleSwap } from "../lease/cell-swap.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { leftAlone, NOTHING, together } from "./garbage.ts";
import type { CollectionContext, Findings, GarbageKind, LeftReason } from "./garbage.ts";
import { isGone, type Servers } from "./servers.ts";
import { isStoreFailure, unlessDamaged } from "../support/record-damage.ts";
import { type Survey, surveyHeads } from "./survey.ts";
import type { Retention } from "@sandboxer/protocol";
import { isOnlyForFork, keptBy } from "../checkpoints/retention.ts";

const READS_AT_ONCE = 16;
/** A fork whose server lives may take this long to create its sandboxes; until then they may not need its snapshot. */
const FORK_MS = 24 * 3_600_000;

/** A snapshot as it was found: its objects first, then its record. */
export interface SightedSnapshot {
  readonly id: string;
  readonly sizeBytes: number;
  readonly record: StoredSnapshot | "absent" | "unreadable";
  readonly version: string | undefined;
}

/**
 * Runs before the heads are read: a sandbox that is created from a snapshot writes its head first, and then checks the
 * record.
 */
export async function sightSnapshots({ store, signal }: CollectionContext): Promise<readonly SightedSnapshot[]> {
  const sizes = new Map<string, number>();
  for await (const { key, sizeBytes } of store.list(SNAPSHOTS_FOLDER)) {
    const id = key.split("/")[1] ?? "";
    if (!isSnapshotId(id)) continue;
    const counts = key === imageKey(id) || key === filesKey(id);
    sizes.set(id, (sizes.get(id) ?? 0) + (counts ? sizeBytes : 0));
  }
  const read = async (id: string): Promise<SightedSnapshot> => {
    const cell = await store.readCell(recordKey(id)).catch(unlessDamaged);
    const sizeBytes = sizes.get(id) ?? 0;
    if (cell === "damaged") return { id, sizeBytes, version: undefined, record: "unreadable" };
    const sighted = { id, sizeBytes, version: cell?.version };
    if (cell === undefined) return { ...sighted, record: "absent" };
    try {
      return { ...sighted, record: decodeSnapshot(id, cell.body) };
    } catch (error) {
      if (isStoreFailure(error)) throw error;
      return { ...sighted, record: "unreadable" };
    }
  };
  return await mapAtOnce([...sizes.keys()], READS_AT_ONCE, read, signal);
}

/**
 * Removes snapshots that were never finished, whose removal was interrupted, that lost their name, or that are beyond
 * retention. The record is marked before anything is removed, so that a concurrent publication or creation notices.
 * Then the heads are read once more, for creations that had begun before.
 */
export async function collectSnapshots(
  context: CollectionContext,
  sighted: readonly SightedSnapshot[],
  { servers, survey }: { readonly servers: Servers; readonly survey: Survey },
): Promise<Findings> {
  const names = new SnapshotNames(context.store);
  const parts: Findings[] = [];
  const condemned: SightedSnapshot[] = [];
  const kept: StoredSnapshot[] = [];
  const standing: SnapshotRules["standing"] = async (name, id) => await names.standing(name, id);
  for (const snapshot of sighted) {
    const verdict = await judgeSnapshot(snapshot.record, {
      survey,
      lives: async (instanceId) => instanceId !== "" && !(await isGone(context.store, servers, instanceId)),
      standing,
    });
    if (verdict === "garbage") condemned.push(snapshot);
    else if (verdict !== "keep") parts.push(leftAlone(recordKey(snapshot.id), verdict));
    else if (typeof snapshot.record !== "string") kept.push(snapshot.record);
  }
  const oldIds = new Set<string>();
  for (const old of await oldSnapshots(kept, context.keep, { survey, standing })) {
    const reason = whyOldStays(old, survey);
    if (reason === undefined) oldIds.add(old.id);
    else parts.push(leftAlone(recordKey(old.id), reason));
  }
  for (const fork of kept.filter(isOnlyForFork)) {
    const begun = Date.parse(fork.created_at) > context.clock.wallMs() - FORK_MS;
    const lives = begun && !(await isGone(context.store, servers, fork.publisher));
    if (!lives && whyOldStays(fork, survey) === undefined) oldIds.add(fork.id);
  }
  condemned.push(...sighted.filter(({ id }) => oldIds.has(id)));
  const garbageOf = ({ id, sizeBytes }: SightedSnapshot): Findings =>
    asGarbage(id, sizeBytes, oldIds.has(id) ? "old-snapshot" : "snapshot");
  if (!context.apply) return together([...parts, ...condemned.map(garbageOf)]);
  const marked: SightedSnapshot[] = [];
  for (const snapshot of condemned) {
    if (await condemn(context, snapshot)) marked.push(snapshot);
    else parts.push(leftAlone(recordKey(snapshot.id), "claimed by a server meanwhile"));
  }
  const { neededSnapshots } = marked.length === 0 ? survey : await surveyHeads(context.store);
  for (const snapshot of marked) {
    context.signal?.throwIfAborted();
    // It stays condemned, which prevents new sandboxes from it, until a later collection finds it unused.
    if (neededSnapshots.has(snapshot.id)) parts.push(leftAlone(recordKey(snapshot.id), "in use"));
    else {
      await removeSnapshot(context.store, snapshot.id);
      parts.push(garbageOf(snapshot));
    }
  }
  return together(parts);
}

function asGarbage(id: string, sizeBytes: number, kind: GarbageKind): Findings {
  return sizeBytes === 0 ? NOTHING : { garbage: [{ kind, key: imageKey(id), sizeBytes }], left: [] };
}

/** False if the record has changed. Data without a record was condemned before: the announcement comes first. */
async function condemn(
  { store, clock, signal }: CollectionContext,
  { id, record, version }: SightedSnapshot,
): Promise<boolean> {
  if (typeof record === "string") return record === "absent";
  const { name } = record;
  if (name !== null && record.state !== "removing" && !(await new SnapshotNames(store).condemn(name, id))) return false;
  const next = successor<StoredSnapshot>(record, { ...record, state: "removing", removed_by: "" }, randomUUID());
  const settled = await settleSwap(store, clock, {
    key: recordKey(id),
    expected: version,
    body: encodeCell(next),
    isOurs: ({ body }) => decodeSnapshot(id, body).nonce === next.nonce,
    ...(signal === undefined ? {} : { signal }),
  });
  return settled.outcome === "written";
}

/** The snapshots that are only old and that a rule does not keep. Named and pinned ones are always kept. */
async function oldSnapshots(
  records: readonly StoredSnapshot[],
  keep: Retention,
  { survey, standing }: { readonly survey: Survey; readonly standing: SnapshotRules["standing"] },
): Promise<readonly StoredSnapshot[]> {
  const expendable: StoredSnapshot[] = [];
  for (const record of records) {
    if (record.state !== "ready" || record.pinned === true) continue;
    if (record.name === null || (await standing(record.name, record.id)) !== "has") expendable.push(record);
  }
  const bySandbox = Map.groupBy(expendable, ({ sandbox_id }) => sandbox_id);
  return [...bySandbox].flatMap(([sandboxId, ofOne]) => {
    const rule = survey.retention.get(sandboxId)?.snapshots ?? keep.snapshots;
    if (rule === undefined) return [];
    const dated = ofOne.map((record) => ({ record, ms: Date.parse(record.created_at) || 0 }));
    const kept = keptBy(rule, dated);
    return dated.filter((each) => !kept.has(each)).map(({ record }) => record);
  });
}

/** Why an old snapshot is kept anyway; undefined: it is removed. */
function whyOldStays(record: StoredSnapshot, survey: Survey): LeftReason | undefined {
  if (survey.neededSnapshots.has(record.id)) return "in use";
  if (!survey.complete) return "a head that cannot be read may name it";
  // Only a server can inform its backend.
  return record.image_sha256 === null ? "beyond retention, but kept by its provider" : undefined;
}

interface SnapshotRules {
  readonly survey: Pick<Survey, "neededSnapshots" | "complete">;
  /** Whether a server may still act. */
  readonly lives: (instanceId: string) => Promise<boolean>;
  /** Whether it has a name, or had one. */
  readonly standing: (name: string, snapshotId: string) => Promise<"has" | "had" | "never">;
}

/**
 * Classifies a snapshot by its record. Data without a record is garbage: records are written before images and removed
 * after them.
 */
async function judgeSnapshot(
  record: StoredSnapshot | "absent" | "unreadable",
  { survey, lives, standing }: SnapshotRules,
): Promise<"keep" | "garbage" | LeftReason> {
  if (record === "absent") return "garbage";
  if (record === "unreadable") return "its record cannot be read";
  const { state, publisher } = record;
  if (state === "saving") return (await lives(publisher)) ? "a save may be in progress" : "garbage";
  if (state === "removing") {
    if (await lives(record.removed_by ?? "")) return "a removal may be in progress";
  } else if (!(await hasLostItsName(record, { lives, standing }))) return "keep";
  if (survey.neededSnapshots.has(record.id)) return "in use";
  return survey.complete ? "garbage" : "a head that cannot be read may name it";
}

/** Taken with a name over WebSocket that another snapshot has now, or that it never got because its server died. */
async function hasLostItsName(
  { id, reason, name, publisher, pinned }: StoredSnapshot,
  { lives, standing }: Pick<SnapshotRules, "lives" | "standing">,
): Promise<boolean> {
  if (reason !== "named" || name === null || pinned === true) return false;
  const stands = await standing(name, id);
  return stands === "had" || (stands === "never" && !(await lives(publisher)));
}
