import { SandboxerError } from "@sandboxer/protocol";
import { keptBy } from "../checkpoints/retention.ts";
import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { removeSnapshot } from "./snapshot-remove.ts";

/** Removes the checkpoints that the newest one, which the head names, has made old. Images that came later are others'. */
export async function pruneCheckpoints(
  { durable }: ManagerContext,
  { id, facts }: Pick<LiveSandbox, "id" | "facts">,
  newestName: string,
): Promise<void> {
  const keep = facts.about.retention?.checkpoints ?? durable.retention.checkpoints;
  await durable.checkpoints.prune(id, newestName, keep);
}

/**
 * Removes the snapshots of a sandbox that newer ones have made old, where somebody said that there is such a thing: never
 * those with a name, those that are pinned, and those that a sandbox needs.
 */
export async function pruneSnapshots(
  context: ManagerContext,
  { id: sandboxId, facts }: Pick<LiveSandbox, "id" | "facts">,
): Promise<void> {
  const keep = facts.about.retention?.snapshots ?? context.options.durable?.retention.snapshots;
  if (keep === undefined) return;
  const all = await context.snapshots.list();
  const dated = all
    .filter((each) => each.sandbox_id === sandboxId && isExpendable(each))
    .map(({ id, created_at }) => ({ id, ms: Date.parse(created_at) }));
  const kept = keptBy(keep, dated);
  for (const state of dated) if (!kept.has(state)) await removeOld(context, state.id);
}

function isExpendable(snapshot: { name: string | null; pinned?: boolean | undefined; state: string }): boolean {
  return snapshot.name === null && snapshot.pinned !== true && snapshot.state === "ready";
}

async function removeOld(context: ManagerContext, id: string): Promise<void> {
  try {
    await removeSnapshot(context, id, { unlessNamed: true });
  } catch (error) {
    const others = ["snapshot_in_use", "snapshot_pinned", "snapshot_not_found", "name_taken"];
    if (!(error instanceof SandboxerError) || !others.includes(error.code)) throw error;
  }
}
