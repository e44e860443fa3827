import { asSandboxerError } from "@sandboxer/protocol";
import { discardLostSandbox, lossOf } from "../lifecycle/end-of-sandbox.ts";
import { CalledOff, pauseSandbox } from "../lifecycle/pause.ts";
import type { Cause } from "../client.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { abandonCopy } from "./residence.ts";

/** The reason of an owner whose sandbox is in use; the newcomer reports it to its client. */
export const IN_USE = "in use";
/** The reason for a sandbox that can neither be saved nor found again at its provider. */
const CANNOT_LEAVE = "it cannot be saved";
const REFUSE_AGAIN_MS = 500;

/**
 * Another server requests a sandbox that runs here: it is saved with its executions and released, or the request is
 * refused.
 */
export async function yieldSandbox(context: ManagerContext, sandboxId: string): Promise<void> {
  const { ownership } = context.durable;
  const sandbox = context.sandboxes.get(sandboxId);
  // A save or an end in progress answers by itself, unless it fails.
  if (sandbox?.state === "saving" || sandbox?.state === "destroying") await sandbox.queue.run(async () => {});
  // This server resumes it by itself: no client waits for it here.
  if (context.accepted.restoring.has(sandboxId)) await context.taking.run(sandboxId, async () => {});
  if (sandbox === undefined) return await releaseAbsent(context, sandboxId);
  if (context.sandboxes.get(sandboxId) !== sandbox) return;
  // A sandbox that is being restored here stays too: a client waits for it.
  if (!mayGo(sandbox)) return await refuse(context, sandboxId, sandbox.outlivesServer ? IN_USE : CANNOT_LEAVE);
  const to = ownership.held(sandboxId)?.want?.instance_id ?? null;
  try {
    const give = sandbox.facts.residence === "provider" ? handOffKept : pauseSandbox;
    const lastCheck = (): void => {
      if (!mayGo(sandbox)) throw new CalledOff();
    };
    await give(context, sandbox, "handoff", { lastCheck });
    context.recentHandoffs.note(sandboxId);
    context.events.append({ type: "sandbox.handed_over", sandboxId, data: { from: ownership.instanceId, to } });
  } catch (error) {
    if (sandbox.state === "gone") return;
    const reason = error instanceof CalledOff ? IN_USE : asSandboxerError(error).message;
    await refuse(context, sandboxId, reason);
  }
}

/** The requester waits for the answer, even while the store that carries it is unavailable. */
async function refuse(context: ManagerContext, sandboxId: string, reason: string): Promise<void> {
  const { ownership } = context.durable;
  for (;;) {
    try {
      return void (await ownership.refuse(sandboxId, reason));
    } catch (error) {
      const mayWork = asSandboxerError(error).row.retryable && ownership.held(sandboxId) !== undefined;
      if (context.draining || !mayWork) throw error;
      await context.options.clock.sleep(REFUSE_AGAIN_MS);
    }
  }
}

/** A provider-kept sandbox keeps running there with its executions: the newcomer finds it by its id. */
async function handOffKept(
  context: ManagerContext,
  sandbox: LiveSandbox,
  cause: Cause,
  { lastCheck }: { readonly lastCheck: () => void },
): Promise<void> {
  await sandbox.queue.run(async () => {
    lastCheck();
    const { client } = sandbox;
    client?.notify({ type: "saving", cause });
    sandbox.moveTo("saving");
    sandbox.processes.quiesce();
    await client?.quiesce();
    try {
      await context.durable.ownership.release(sandbox, { stoppedAt: null });
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      const lost = lossOf(context, sandbox, error);
      if (lost !== undefined) await discardLostSandbox(context, sandbox, lost);
      else if (sandbox.state === "saving") sandbox.moveTo("running");
      client?.notify({ type: "save_failed", cause, error });
      throw error;
    }
    sandbox.stoppedMs = context.nowMs;
    if (sandbox.state !== "gone") sandbox.moveTo("gone");
    await abandonCopy(sandbox);
    client?.notify({ type: "saved", cause });
  });
}

/**
 * A release that failed because the store was unavailable leaves this server as the owner of a sandbox that it does not
 * have.
 */
async function releaseAbsent(context: ManagerContext, sandboxId: string): Promise<void> {
  const { ownership } = context.durable;
  await context.taking.run(sandboxId, async () => {
    const held = ownership.held(sandboxId);
    if (context.sandboxes.has(sandboxId) || held === undefined) return;
    await ownership.release({ id: sandboxId, epoch: held.epoch });
  });
  // It was resumed here meanwhile: the request is still open.
  if (context.sandboxes.has(sandboxId)) await yieldSandbox(context, sandboxId);
}

/** A sandbox is handed off if its creator allowed it, or if it is not in use. */
function mayGo(sandbox: LiveSandbox): boolean {
  if (sandbox.state !== "running" || !sandbox.outlivesServer) return false;
  // Its users were sent away by another server, and come back wherever they like.
  if (sandbox.facts.flags.enable_sandbox_handoff || sandbox.isUnused) return true;
  return sandbox.client === undefined && !sandbox.processes.attended && !sandbox.held;
}
