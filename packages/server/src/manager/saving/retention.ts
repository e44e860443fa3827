import { type Keep, type Lineage, SandboxerError } from "@sandboxer/protocol";
import { isOnlyForFork, keptBy } from "../../checkpoints/retention.ts";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { SavingContext } from "../room-contexts.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { removeSnapshot } from "../snapshots/remove-snapshot.ts";

/**
 * Removes checkpoints that are beyond retention now that the head names the newest one. Later images belong to others.
 */
export async function pruneCheckpoints(
  { durable }: SavingContext,
  { id, facts }: Pick<LiveSandbox, "id" | "facts">,
  newestName: string,
): Promise<void> {
  const keep = facts.about.retention?.checkpoints ?? durable.retention.checkpoints;
  await durable.checkpoints.prune(id, newestName, keep);
}

/**
 * Removes the snapshots of a sandbox that are beyond retention, if a rule is set: never named, pinned or needed ones.
 */
export async function pruneSnapshots(
  context: SavingContext,
  { id: sandboxId, facts }: Pick<LiveSandbox, "id" | "facts">,
): Promise<void> {
  const keep = facts.about.retention?.snapshots ?? context.durable.retention.snapshots;
  if (keep === undefined) return;
  const ofOne = (await context.snapshots.list()).filter((each) => each.sandbox_id === sandboxId);
  for (const { id } of oldSnapshots(ofOne, keep)) await removeOld(context, id);
}

/**
 * Call it when a sandbox is deleted, or paused with a checkpoint of its own: if it began with a snapshot that only a
 * fork made, and no other sandbox needs that, the snapshot goes. Collections find the rest.
 */
export async function pruneForkSnapshot(
  context: SavingContext,
  { id: sandboxId, lineage }: { readonly id: string; readonly lineage: Lineage },
): Promise<void> {
  const snapshotId = lineage.snapshot ?? null;
  if (snapshotId === null || context.draining || context.forking.has(snapshotId)) return;
  // The check of all heads is not begun for each of many forks.
  const siblings = [...context.sandboxes.values()].filter(({ facts }) => facts.lineage.snapshot === snapshotId);
  if (siblings.some(({ id, state }) => id !== sandboxId && state !== "gone")) return;
  const snapshot = await context.snapshots.get(snapshotId);
  if (snapshot !== undefined && isOnlyForFork(snapshot)) await removeOld(context, snapshotId);
}

/** The snapshots of a sandbox that a rule does not keep. Whether a sandbox needs one of them is checked elsewhere. */
export function oldSnapshots(ofOne: readonly StoredSnapshot[], keep: Keep): readonly StoredSnapshot[] {
  const dated = ofOne.filter(isExpendable).map((snapshot) => ({ snapshot, ms: Date.parse(snapshot.created_at) }));
  const kept = keptBy(keep, dated);
  return dated.filter((each) => !kept.has(each)).map(({ snapshot }) => snapshot);
}

function isExpendable(snapshot: { name: string | null; pinned?: boolean | undefined; state: string }): boolean {
  return snapshot.name === null && snapshot.pinned !== true && snapshot.state === "ready";
}

async function removeOld(context: SavingContext, id: string): Promise<void> {
  try {
    await removeSnapshot(context, id, { unlessNamed: true });
  } catch (error) {
    const others = ["snapshot_in_use", "snapshot_pinned", "snapshot_not_found", "name_taken"];
    if (!(error instanceof SandboxerError) || !others.includes(error.code)) throw error;
  }
}
