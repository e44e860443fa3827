import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { SandboxProcess } from "../../backends/backend.ts";
import { cutMessage } from "../../support/cut-message.ts";
import type { ManagerContext } from "../context.ts";
import type { EndContext } from "../room-contexts.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { abandonCopy, releaseLeft } from "../ownership/residence.ts";
import { adoptProcesses } from "../processes/hooks.ts";
import { readNotes } from "../processes/process-notes.ts";

/**
 * Watches a sandbox that just started. If it ends by itself, it is removed from the table, its client is told, and its
 * stored state is released; a provider keeps its part. `processes` are the ones that the sandbox restored.
 */
export function watchForEnd(context: ManagerContext, sandbox: LiveSandbox, processes: readonly SandboxProcess[]): void {
  adoptProcesses(context, sandbox, processes);
  recallProcesses(context, sandbox);
  const { handle } = sandbox;
  void handle.ended.then(async (end) => {
    // A replaced copy does not matter any more.
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
    context.inBackground("release of a sandbox that ended", releaseLeft(context, sandbox, true));
    if (sandbox.facts.residence !== "provider") await handle.destroy().catch(() => {});
  });
}

/** In the background: nobody waits for it but those who list processes. */
function recallProcesses(context: ManagerContext, sandbox: LiveSandbox): void {
  const { processes, parentCheckpoint, facts, clientKey } = sandbox;
  if (processes.all.every(({ command }) => command !== null)) return;
  const place = { sandboxId: sandbox.id, snapshot: facts.lineage.snapshot, presentedKey: clientKey };
  processes.recall(readNotes(context, { ...place, checkpoint: parentCheckpoint }));
  context.untilEnded(processes.recalled);
}

/**
 * Call it after work on a sandbox failed, before its copy continues to run. If this server no longer holds the sandbox,
 * returns the error to end it with, whatever the work failed with.
 */
export function lossOf(
  { durable }: Pick<ManagerContext, "durable">,
  sandbox: LiveSandbox,
  error: SandboxerError,
): SandboxerError | undefined {
  if (error.code === "lease_lost") return error;
  return durable.ownership.holds(sandbox) ? undefined : leaseLost(error);
}

export function leaseLost(cause?: unknown): SandboxerError {
  return new SandboxerError("lease_lost", "Another server owns the sandbox now.", { cause });
}

/** Ends the local copy of a sandbox that another server owns now. Nothing is written to the store. */
export async function discardLostSandbox(
  context: EndContext,
  sandbox: LiveSandbox,
  error: SandboxerError,
): Promise<void> {
  // A sandbox that is being restored checks its ownership before it runs.
  if (sandbox.state === "gone" || sandbox.state === "restoring") return;
  tellEnd(context, sandbox, error.code, error.message);
  sandbox.moveTo("gone");
  context.durable.ownership.forget(sandbox);
  sandbox.client?.notify({ type: "lost", error });
  await abandonCopy(sandbox);
}

/**
 * For a sandbox that only this server can run, after the server was declared dead and registered under another id:
 * claims it again under the new id. The sandbox ends only if its head was removed meanwhile.
 */
export async function reclaim(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  try {
    const { epoch } = await context.durable.ownership.claim(sandbox.id);
    sandbox.epoch = epoch;
  } catch (thrown) {
    const error = asSandboxerError(thrown);
    if (sandbox.state === "running") await discardLostSandbox(context, sandbox, error);
  }
}

/** It ended without having been asked to. */
function tellEnd(context: EndContext, { id: sandboxId }: LiveSandbox, reason: string, message: string): void {
  context.events.append({ type: "sandbox.failed", sandboxId, data: { reason, message: cutMessage(message) } });
}
