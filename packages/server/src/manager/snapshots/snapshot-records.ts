import type { DamagedSnapshot, QueryOf, Routes, SnapshotInfo } from "@sandboxer/protocol";
import type { KeyOptions } from "../../checkpoints/data-keys.ts";
import type { SnapshotChanges } from "../../checkpoints/snapshot-types.ts";
import { recordKey, type StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { ObservingContext } from "../room-contexts.ts";
import { type Descendant, readDescendants } from "./lineage.ts";
import { hasLabels } from "../observing/list-sandboxes.ts";
import { findSnapshot } from "./source.ts";

type SnapshotFilter = Omit<QueryOf<Routes["listSnapshots"]>, "limit" | "cursor">;

export interface ListedSnapshots {
  /** Newest first, each with its descendants. */
  readonly items: SnapshotInfo[];
  /** Snapshots whose record cannot be read. None with a filter: it is unknown whether they match. */
  readonly damaged: DamagedSnapshot[];
}

export async function listSnapshots(context: ObservingContext, filter: SnapshotFilter): Promise<ListedSnapshots> {
  const damaged: DamagedSnapshot[] = [];
  const all = await context.snapshots.list((id, error) => {
    context.options.observer.problem("a stored snapshot cannot be read", { snapshotId: id, error });
    damaged.push({ id, object: recordKey(id), message: error.message, next_step: error.hint });
  });
  const wanted = all.filter((each) => matches(each, filter));
  const relatives = await readRelatives(context, all);
  const items = wanted.map((each) => describeSnapshot(each, relatives)).toSorted(newestFirst);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return { items, damaged: isFiltered ? [] : damaged.toSorted((a, b) => (a.id < b.id ? -1 : 1)) };
}

/** A snapshot by id or name. With `verify` every byte is checked, and the record gets the result. */
export async function getSnapshot(
  context: ObservingContext,
  idOrName: string,
  { verify = false, ...options }: CallOptions & KeyOptions & { readonly verify?: boolean } = {},
): Promise<SnapshotInfo> {
  const found = await findSnapshot(context, idOrName);
  const snapshot = verify ? await context.snapshots.verify(found.id, options) : found;
  return describeSnapshot(snapshot, await readRelatives(context, await context.snapshots.list()));
}

export async function amendSnapshot(
  context: ObservingContext,
  idOrName: string,
  changes: SnapshotChanges,
): Promise<SnapshotInfo> {
  const { id, sandbox_id: sandboxId } = await findSnapshot(context, idOrName);
  const { name, pinned = false } = await context.snapshots.amend(id, changes);
  context.events.append({ type: "snapshot.changed", sandboxId, data: { snapshot_id: id, name, pinned } });
  return await getSnapshot(context, id);
}

/** A snapshot that was just taken has no descendants yet. */
export function describeNew(snapshot: StoredSnapshot): SnapshotInfo {
  return describeSnapshot(snapshot, { children: new Map(), descendants: new Map() });
}

interface Relatives {
  readonly children: ReadonlyMap<string | null, readonly StoredSnapshot[]>;
  readonly descendants: ReadonlyMap<string, readonly Descendant[]>;
}

async function readRelatives(context: ObservingContext, all: readonly StoredSnapshot[]): Promise<Relatives> {
  return { children: Map.groupBy(all, ({ parent }) => parent), descendants: await readDescendants(context) };
}

function describeSnapshot(snapshot: StoredSnapshot, { children, descendants }: Relatives): SnapshotInfo {
  const { id, state } = snapshot;
  return {
    id,
    name: snapshot.name,
    state: state === "damaged" || state === "missing" ? state : "ready",
    problem: snapshot.problem,
    mode: snapshot.mode,
    kind: snapshot.kind,
    backend: snapshot.backend,
    profile: snapshot.profile,
    labels: snapshot.labels,
    sandbox_id: snapshot.sandbox_id,
    sandbox_name: snapshot.sandbox_name,
    parent: snapshot.parent,
    children: (children.get(id) ?? []).toSorted(newestFirst).map((child) => child.id),
    sandboxes: (descendants.get(id) ?? []).map(({ sandboxId }) => sandboxId),
    reason: snapshot.reason,
    pinned: snapshot.pinned === true,
    encryption: snapshot.encryption ?? null,
    size_bytes: snapshot.size_bytes,
    created_at: snapshot.created_at,
    proven: snapshot.proven ?? null,
    unproven: snapshot.unproven ?? null,
    details: snapshot.details,
  };
}

function matches(snapshot: StoredSnapshot, filter: SnapshotFilter): boolean {
  if (filter.sandbox_id !== undefined && snapshot.sandbox_id !== filter.sandbox_id) return false;
  if (filter.name !== undefined && snapshot.name !== filter.name) return false;
  if (filter.mode !== undefined && snapshot.mode !== filter.mode) return false;
  if (filter.state !== undefined && snapshot.state !== filter.state) return false;
  return hasLabels(snapshot.labels, filter.label);
}

function newestFirst(a: Pick<SnapshotInfo, "id" | "created_at">, b: Pick<SnapshotInfo, "id" | "created_at">): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? 1 : -1;
  return a.id < b.id ? -1 : 1;
}
