import { entryKey, placeOf, viewOf } from "../store/index/index-names.ts";
import type { StoredSnapshot } from "./snapshot-record.ts";

export type SnapshotPart =
  | { readonly sandboxId: string }
  | { readonly key: string }
  /** The snapshots whose sandbox had this one's state before. */
  | { readonly parent: string };

export function viewOfPart(part: SnapshotPart): string {
  if ("sandboxId" in part) return viewOf("snapshots-of", part.sandboxId);
  return "key" in part ? viewOf("snapshots-key", part.key) : viewOf("snapshots-after", part.parent);
}

export function isPart(snapshot: StoredSnapshot, part: SnapshotPart): boolean {
  if ("sandboxId" in part) return snapshot.sandbox_id === part.sandboxId;
  return "key" in part ? snapshot.key === part.key : snapshot.parent === part.parent;
}

/** The entries that a snapshot's record needs. Nothing that they depend on ever changes. */
export function snapshotEntries({
  id,
  created_at,
  sandbox_id: sandboxId,
  key,
  parent,
}: Pick<StoredSnapshot, "id" | "created_at" | "sandbox_id" | "key" | "parent">): readonly string[] {
  const parts: SnapshotPart[] = [{ sandboxId }];
  if (key != null) parts.push({ key });
  if (parent != null) parts.push({ parent });
  const place = placeOf(created_at, id);
  return parts.map((part) => entryKey(viewOfPart(part), place));
}
