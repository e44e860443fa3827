import { type Lineage, type RemovedData, SandboxerError } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { pruneForkSnapshot } from "../saving/retention.ts";
import { tracked, type VerbOptions } from "../observing/operations/tracked.ts";

/**
 * Deletes a sandbox and its checkpoints. The tombstone is written first: after it, no server can restore the sandbox.
 * `lastCheck` is called when nothing else is in progress, and throws to cancel it.
 */
export async function destroySandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { lastCheck, ...options }: VerbOptions & { readonly lastCheck?: () => void } = {},
): Promise<RemovedData> {
  const work = { operation: "destroy", sandboxId: sandbox.id, backend: sandbox.facts.backend } as const;
  return await sandbox.queue.run(() => {
    lastCheck?.();
    return tracked(context, work, options, async () => {
      // A sandbox that was paused or handed off meanwhile is not this server's to delete.
      if (sandbox.state === "gone") throw new SandboxerError("wrong_state", "The sandbox was deleted.");
      await sandbox.liveSaves.callOff();
      await context.durable.ownership.destroy(sandbox.id);
      await end(sandbox);
      return await forgetData(context, { id: sandbox.id, lineage: sandbox.facts.lineage }, sandbox.outlivesServer);
    });
  });
}

export const NOTHING_STORED: RemovedData = { removed_bytes: 0, shared_bytes: 0 };

/**
 * Removes the stored data of a deleted sandbox in the background, and returns its size. The tombstone stays if other
 * servers could have claimed the sandbox.
 */
export async function forgetData(
  context: ManagerContext,
  { id: sandboxId, lineage }: { readonly id: string; readonly lineage: Lineage },
  outlivesServer: boolean,
): Promise<RemovedData> {
  const { checkpoints, ownership } = context.durable;
  context.inBackground("removal of a fork's snapshot", pruneForkSnapshot(context, { id: sandboxId, lineage }));
  const what = "removal of a deleted sandbox's data";
  if (!outlivesServer) {
    context.inBackground(what, ownership.erase(sandboxId));
    return NOTHING_STORED;
  }
  // If the store fails now, the tombstone is already written: the sandbox is deleted, and its data is removed later.
  const weighed = await checkpoints.weighAll(sandboxId).catch(() => undefined);
  context.inBackground(what, checkpoints.removeAll(sandboxId));
  return { removed_bytes: weighed?.removedBytes ?? null, shared_bytes: weighed?.sharedBytes ?? null };
}

/** A sandbox may have ended by itself meanwhile; if an earlier attempt to end it failed, it is tried again. */
async function end(sandbox: LiveSandbox): Promise<void> {
  if (sandbox.state === "gone") return;
  if (sandbox.state !== "destroying") sandbox.moveTo("destroying");
  await sandbox.handle.destroy();
  sandbox.moveTo("gone");
}
