import { type RemovedData, SandboxerError } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { tracked, type VerbOptions } from "../observing/operations/tracked.ts";

/** Destroys a sandbox and everything that is stored of it. The tombstone comes first: after it nobody can bring it back. */
export async function destroySandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  options: VerbOptions = {},
): Promise<RemovedData> {
  const work = { operation: "destroy", sandboxId: sandbox.id, backend: sandbox.facts.backend } as const;
  return await sandbox.queue.run(() =>
    tracked(context, work, options, async () => {
      // What was saved or handed over meanwhile is not this server's to destroy.
      if (sandbox.state === "gone") throw new SandboxerError("wrong_state", "The sandbox was deleted.");
      await sandbox.liveSaves.callOff();
      await context.durable.ownership.destroy(sandbox.id);
      await end(sandbox);
      return await forgetData(context, sandbox.id, sandbox.outlivesServer);
    }),
  );
}

export const NOTHING_STORED: RemovedData = { removed_bytes: 0, shared_bytes: 0 };

/**
 * Removes the stored data of a destroyed sandbox in the background, and returns how much there is. The tombstone of a
 * sandbox that other servers could have taken over stays.
 */
export async function forgetData(
  context: ManagerContext,
  sandboxId: string,
  outlivesServer: boolean,
): Promise<RemovedData> {
  const { checkpoints, ownership } = context.durable;
  const what = "removal of a deleted sandbox's data";
  if (!outlivesServer) {
    context.inBackground(what, ownership.erase(sandboxId));
    return NOTHING_STORED;
  }
  // A store that fails now has the tombstone: the sandbox is gone, and its data goes later.
  const weighed = await checkpoints.weighAll(sandboxId).catch(() => undefined);
  context.inBackground(what, checkpoints.removeAll(sandboxId));
  return { removed_bytes: weighed?.removedBytes ?? null, shared_bytes: weighed?.sharedBytes ?? null };
}

/** A sandbox may have ended by itself meanwhile; one whose end has failed before is ended again. */
async function end(sandbox: LiveSandbox): Promise<void> {
  if (sandbox.state === "gone") return;
  if (sandbox.state !== "destroying") sandbox.moveTo("destroying");
  await sandbox.handle.destroy();
  sandbox.moveTo("gone");
}
