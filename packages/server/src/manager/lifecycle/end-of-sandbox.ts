import { SandboxerError } from "@sandboxer/protocol";
import { cutMessage } from "../../support/cut-message.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { noteOutliving, outlives } from "../ownership/outliving-records.ts";
import { adoptProcesses } from "../processes/hooks.ts";

/**
 * For a sandbox that has just come to run. One that ends by itself is taken off the table, its client is told, and what
 * is stored of it is set free; what its provider keeps of it stays there. The processes that it has brought along become known here.
 */
export function watchForEnd(context: ManagerContext, sandbox: LiveSandbox): void {
  // One that ends first has none any more.
  void adoptProcesses(context, sandbox).catch(() => {});
  const { handle } = sandbox;
  void handle.ended.then(async (end) => {
    // A copy that was replaced is of no interest any more.
    if (handle !== sandbox.handle) return;
    if (end.reason === "destroyed" || sandbox.state === "gone" || sandbox.state === "destroying") return;
    context.options.observer.problem("sandbox ended unexpectedly", {
      sandboxId: sandbox.id,
      reason: end.reason,
      message: end.message,
    });
    const error = new SandboxerError("sandbox_failed", end.message);
    tellEnd(context, sandbox, end.reason, end.message);
    sandbox.moveTo("gone");
    sandbox.client?.notify({ type: "failed", error });
    if (sandbox.durable)
      context.behind("release of a sandbox that ended", context.durable.ownership.release(sandbox.id));
    const { facts } = sandbox;
    await (outlives(context, facts) ? noteOutliving(context, facts, true) : handle.destroy()).catch(() => {});
  });
}

/** Ends the local copy of a sandbox that another server owns now. Nothing is written to the store. */
export async function discardLostSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  error: SandboxerError,
): Promise<void> {
  // One that is being brought back finds it out by itself before it runs.
  if (sandbox.state === "gone" || sandbox.state === "restoring") return;
  tellEnd(context, sandbox, error.code, error.message);
  sandbox.moveTo("gone");
  context.durable.ownership.forget(sandbox.id);
  sandbox.client?.notify({ type: "lost", error });
  await sandbox.handle.destroy();
}

/** It has gone without having been asked to. */
function tellEnd(context: ManagerContext, { id: sandboxId }: LiveSandbox, reason: string, message: string): void {
  context.events.append({ type: "sandbox.failed", sandboxId, data: { reason, message: cutMessage(message) } });
}
