import { asSandboxerError, type CheckpointReference, type Head, type SandboxerError } from "@sandboxer/protocol";
import type { Cause } from "../client.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";
import { freezeIfDue } from "../ownership/freeze.ts";
import { leaveSandbox } from "../ownership/residence.ts";
import { dropExecution } from "../processes/start-process.ts";
import { endRisk } from "../saving/risk.ts";
import { type Captured, checkDurable, followHead, storeCapture, withCapture } from "../saving/save.ts";
import { discardLostSandbox, lossOf } from "./end-of-sandbox.ts";

export interface PauseOptions extends VerbOptions {
  /** Its client asks for it, and tells itself how it went. Refused while something executes, which it would lose sight of. */
  readonly byClient?: boolean;
  /** Called right before the pause begins, when nothing else is under way any more; throws to call it off. */
  readonly lastCheck?: () => void;
}

/**
 * Pauses a sandbox: saves everything of it, with what executes, publishes that and gives the sandbox up in one step, and
 * ends the copy here. An attached client is told. When any of it fails the sandbox keeps running as if nothing had
 * happened, unless another server has taken it meanwhile.
 */
export async function pauseSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  cause: Cause,
  options: PauseOptions = {},
): Promise<Head> {
  return await whilePausing(context, sandbox, cause, options, async (track) => {
    const checkpoint = await withLastCapture(context, sandbox, track, (captured) =>
      storeCapture(context, captured, track),
    );
    const head = await publishAndGiveUp(context, sandbox, checkpoint, cause, track);
    endCopy(context, sandbox);
    return head;
  });
}

/**
 * Saves a sandbox that is about to end, in its turn and when nothing else is under way. When that fails the sandbox keeps
 * running, or whatever else `onFailure` does.
 */
export async function whilePausing<Result>(
  context: ManagerContext,
  sandbox: LiveSandbox,
  cause: Cause,
  options: PauseOptions,
  save: (track: Track) => Promise<Result>,
  onFailure = keepRunning,
): Promise<Result> {
  checkDurable(sandbox);
  const { byClient = false, lastCheck } = options;
  return sandbox.queue.run(async () => {
    const { processes } = sandbox;
    if (byClient) processes.checkNotExecuting("Cannot checkpoint while an execution is in progress.");
    await sandbox.liveSaves.callOff();
    lastCheck?.();
    const { client } = sandbox;
    const told = byClient ? undefined : client;
    sandbox.moveTo("saving");
    told?.notify({ type: "saving", cause });
    // Before anything of the sandbox rests: what these readers have not acknowledged is in the image.
    processes.quiesce();
    const { id: sandboxId, facts } = sandbox;
    const work = { operation: "checkpoint", sandboxId, backend: facts.backend, reason: cause } as const;
    try {
      const saved = await tracked(context, work, options, async (track) => {
        await client?.quiesce();
        return await save(track);
      });
      told?.notify({ type: "saved", cause });
      return saved;
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      await onFailure(context, sandbox, error);
      told?.notify({ type: "save_failed", cause, error });
      throw error;
    }
  });
}

/** The sandbox stays silent after it. */
export async function withLastCapture<Result>(
  context: ManagerContext,
  sandbox: LiveSandbox,
  track: Track,
  work: (captured: Captured) => Promise<Result>,
): Promise<Result> {
  // An execution whose end its client knows of has no business in the next life.
  if (sandbox.processes.execution?.told === true) await dropExecution(sandbox);
  sandbox.stoppedMs = context.nowMs;
  return await withCapture(context, sandbox, track, { ...track.options, leaveRunning: false }, work);
}

/** Makes a stored capture the state of the sandbox and gives the sandbox up. */
export async function publishAndGiveUp(
  context: ManagerContext,
  sandbox: LiveSandbox,
  checkpoint: CheckpointReference,
  reason: Cause,
  track: Track,
): Promise<Head> {
  // When this fails the image stays: the head may name it all the same. If not, collection finds it.
  const head = await context.durable.ownership.publishAndRelease(sandbox, checkpoint);
  // The head has moved: from here on there is no way back, and the views only follow.
  await followHead(context, sandbox, checkpoint.name);
  track.lap("publish");
  track.paused(context.nowMs - (sandbox.stoppedMs ?? context.nowMs));
  const { name, size_bytes, parent } = checkpoint;
  const data = { name, size_bytes, parent, reason };
  context.events.append({ type: "checkpoint.created", sandboxId: sandbox.id, data });
  endRisk(context, sandbox);
  return head;
}

/** Ends the copy of a sandbox that is saved. Its end while it was published changes nothing. */
export function endCopy(context: ManagerContext, sandbox: LiveSandbox): void {
  if (sandbox.state !== "gone") sandbox.moveTo("gone");
  context.inBackground("end of a saved sandbox", sandbox.handle.destroy());
}

/** After a pause that failed. */
async function keepRunning(context: ManagerContext, sandbox: LiveSandbox, error: SandboxerError): Promise<void> {
  const lost = lossOf(context, sandbox, error);
  if (lost !== undefined) return discardLostSandbox(context, sandbox, lost);
  // A sandbox that ended during its save has been taken care of by its end.
  if (sandbox.state !== "saving") return;
  sandbox.stoppedMs = undefined;
  try {
    if (context.durable.ownership.instances.frozen) {
      sandbox.moveTo("running");
      freezeIfDue(context, sandbox);
    } else {
      await sandbox.handle.thaw();
      sandbox.moveTo("running");
    }
    sandbox.touch(context.nowMs);
  } catch (failure) {
    const { id: sandboxId } = sandbox;
    context.options.observer.problem("a sandbox could not continue after a failed save", { sandboxId, error: failure });
    await context.reported("end of a sandbox that could not continue", sandbox.handle.destroy());
    // Also when its end has failed: a copy that nobody can use must not keep the stored one from others.
    if ((sandbox.state as string) !== "gone") sandbox.moveTo("gone");
    context.inBackground("release of a sandbox that could not continue", context.durable.ownership.release(sandbox));
  }
}

/** Ends the copy here without saving it. What is stored stays, at its last checkpoint, and is free for others. */
export async function dropSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  cause: Cause,
  { lastCheck }: Pick<PauseOptions, "lastCheck"> = {},
): Promise<void> {
  await sandbox.queue.run(async () => {
    await sandbox.liveSaves.callOff();
    lastCheck?.();
    if (sandbox.state === "gone") return;
    const { client } = sandbox;
    sandbox.moveTo("destroying");
    client?.notify({ type: "deleting", cause });
    await leaveSandbox(context, sandbox);
    sandbox.moveTo("gone");
    client?.notify({ type: "deleted", cause });
  });
}

/** Thrown when the reason for a pause has gone before it began. */
export class CalledOff extends Error {}

export async function unlessCalledOff(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof CalledOff)) throw error;
  }
}
