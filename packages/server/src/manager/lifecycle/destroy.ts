import { SandboxerError } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { tracked, type VerbOptions } from "../observing/operations/tracked.ts";

/** Destroys a sandbox and everything that is stored of it. The tombstone comes first: after it nobody can bring it back. */
export async function destroySandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  options: VerbOptions = {},
): Promise<void> {
  const work = { operation: "destroy", sandboxId: sandbox.id, backend: sandbox.facts.backend } as const;
  await sandbox.queue.run(() =>
    tracked(context, work, options, async () => {
      // What was saved or handed over meanwhile is not this server's to destroy.
      if (sandbox.state === "gone") throw new SandboxerError("wrong_state", "The sandbox is gone.");
      await sandbox.liveSaves.callOff();
      await context.durable.ownership.destroy(sandbox.id);
      await end(sandbox);
      forgetData(context, sandbox.id, sandbox.outlivesServer);
    }),
  );
}

/** Of one that others could have had, the tombstone stays. */
export function forgetData(context: ManagerContext, sandboxId: string, outlivesServer: boolean): void {
  const { checkpoints, ownership } = context.durable;
  const removal = outlivesServer ? checkpoints.removeAll(sandboxId) : ownership.erase(sandboxId);
  context.inBackground("removal of a destroyed sandbox's data", removal);
}

/** A sandbox may have ended by itself meanwhile; one whose end has failed before is ended again. */
async function end(sandbox: LiveSandbox): Promise<void> {
  if (sandbox.state === "gone") return;
  if (sandbox.state !== "destroying") sandbox.moveTo("destroying");
  await sandbox.handle.destroy();
  sandbox.moveTo("gone");
}
