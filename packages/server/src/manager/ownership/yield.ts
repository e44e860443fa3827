import { asSandboxerError } from "@sandboxer/protocol";
import { discardLostSandbox, lossOf } from "../lifecycle/end-of-sandbox.ts";
import { CalledOff, pauseSandbox } from "../lifecycle/pause.ts";
import type { Cause } from "../client.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { abandonCopy } from "./residence.ts";

/** The word by which an owner says that somebody uses the sandbox; the newcomer tells its client so. */
export const IN_USE = "in use";
/** Of a sandbox that can neither be saved nor found again at its provider. */
const CANNOT_LEAVE = "it cannot be saved";
const REFUSE_AGAIN_MS = 500;

/** Another server asks for a sandbox that lives here: it is saved with what executes and given up, or refused. */
export async function yieldSandbox(context: ManagerContext, sandboxId: string): Promise<void> {
  const { ownership } = context.durable;
  const sandbox = context.sandboxes.get(sandboxId);
  // A save or an end that is under way answers by itself, unless it fails.
  if (sandbox?.state === "saving" || sandbox?.state === "destroying") await sandbox.queue.run(async () => {});
  if (sandbox === undefined) return await releaseAbsent(context, sandboxId);
  if (context.sandboxes.get(sandboxId) !== sandbox) return;
  // Also one that is being taken up here stays: it has a client that waits for it.
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

/** Whoever asks waits for the answer, also when the store that carries it is away for a while. */
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

/** One that its provider keeps runs on there, with what executes: the newcomer finds it by its id. */
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

/** A release that failed because the store was away leaves a sandbox owned by this server that does not have it. */
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

/** A sandbox goes when its creator allowed it, or when nobody would notice. */
function mayGo(sandbox: LiveSandbox): boolean {
  if (sandbox.state !== "running" || !sandbox.outlivesServer) return false;
  if (sandbox.facts.flags.enable_sandbox_handoff) return true;
  return sandbox.client === undefined && !sandbox.processes.attended && !sandbox.held;
}
