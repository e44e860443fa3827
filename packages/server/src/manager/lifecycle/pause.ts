import { asSandboxerError, type Head, type SandboxerError } from "@sandboxer/protocol";
import type { Cause } from "../client.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";
import { freezeIfDue } from "../ownership/freeze.ts";
import { leaveSandbox } from "../ownership/residence.ts";
import { dropExecution } from "../processes/start-process.ts";
import { pruneForkSnapshot } from "../saving/retention.ts";
import { endRisk } from "../saving/risk.ts";
import { type Captured, checkDurable, followHead, storeCapture, withCapture } from "../saving/save.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";
import { discardLostSandbox, lossOf } from "./end-of-sandbox.ts";

export interface PauseOptions extends VerbOptions {
  /**
   * The client itself asked for the pause and reports the result. Refused while something executes, because the client
   * would lose sight of it.
   */
  readonly byClient?: boolean;
  /** Called right before the pause begins, when nothing else is in progress; throws to cancel it. */
  readonly lastCheck?: () => void;
}

/**
 * Pauses a sandbox: saves it with its executions, publishes the image and releases the sandbox in one step, and ends
 * the local copy. An attached client is told. If anything fails, the sandbox keeps running as if nothing had happened,
 * unless another server owns it now.
 */
export async function pauseSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  cause: Cause,
  options: PauseOptions = {},
): Promise<Head> {
  return await whilePausing(context, sandbox, cause, options, async (track) => {
    const head = await withLastCapture(context, sandbox, track, (captured) =>
      unlessSilent(context, sandbox, storeAndGiveUp(context, captured, cause, track)),
    );
    endCopy(context, sandbox);
    return head;
  });
}

/** Calls a pause off when the server drains and the store does not answer. The drain's own save follows it. */
async function unlessSilent(context: ManagerContext, sandbox: LiveSandbox, saved: Promise<Head>): Promise<Head> {
  const { signal } = context.storeSilent;
  try {
    return await unlessAborted(saved, signal);
  } catch (error) {
    if (signal.aborted) sandbox.unansweredSave = saved;
    throw error;
  }
}

/**
 * Saves a sandbox that is about to end, in its turn and when nothing else is in progress. On failure the sandbox keeps
 * running, or `onFailure` decides.
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
    // Before the sandbox is stopped: output that these readers have not acknowledged is part of the image.
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

/** The sandbox sends nothing after this. */
export async function withLastCapture<Result>(
  context: ManagerContext,
  sandbox: LiveSandbox,
  track: Track,
  work: (captured: Captured) => Promise<Result>,
): Promise<Result> {
  // An execution whose end its client knows is not needed after the next restore.
  if (sandbox.processes.execution?.told === true) await dropExecution(sandbox);
  sandbox.stoppedMs = context.nowMs;
  return await withCapture(context, sandbox, track, { ...track.options, leaveRunning: false }, work);
}

/** Stores a capture, publishes it as the state of the sandbox and releases the sandbox. */
export async function storeAndGiveUp(
  context: ManagerContext,
  captured: Captured,
  reason: Cause,
  track: Track,
): Promise<Head> {
  const { sandbox } = captured;
  const checkpoint = await storeCapture(context, captured, track);
  // If this fails the image stays: the head may name it all the same. If not, garbage collection removes it.
  const head = await context.durable.ownership.publishAndRelease(sandbox, checkpoint);
  // The head has moved: there is no way back from here, and everything else follows it.
  await followHead(context, sandbox, checkpoint.name);
  track.lap("publish");
  track.paused(context.nowMs - (sandbox.stoppedMs ?? context.nowMs));
  const { name, size_bytes, parent } = checkpoint;
  const data = { name, size_bytes, parent, reason };
  context.events.append({ type: "checkpoint.created", sandboxId: sandbox.id, data });
  endRisk(context, sandbox);
  const { lineage } = sandbox.facts;
  context.inBackground("removal of a fork's snapshot", pruneForkSnapshot(context, { id: sandbox.id, lineage }));
  return head;
}

/** Ends the copy of a saved sandbox. It does not matter if the copy ended during the publication. */
export function endCopy(context: ManagerContext, sandbox: LiveSandbox): void {
  if (sandbox.state !== "gone") sandbox.moveTo("gone");
  context.inBackground("end of a saved sandbox", sandbox.handle.destroy());
}

/** Cleans up after a failed pause. */
async function keepRunning(context: ManagerContext, sandbox: LiveSandbox, error: SandboxerError): Promise<void> {
  const lost = lossOf(context, sandbox, error);
  if (lost !== undefined) return discardLostSandbox(context, sandbox, lost);
  // A sandbox that ended during its save was handled by its end.
  if (sandbox.state !== "saving") return;
  // A draining server saves it again and then ends it. In between it is stopped, and nobody may use it.
  if (context.draining) return;
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
    // Also when ending it failed: an unusable copy must not keep other servers from the stored state.
    if ((sandbox.state as string) !== "gone") sandbox.moveTo("gone");
    context.inBackground("release of a sandbox that could not continue", context.durable.ownership.release(sandbox));
  }
}

/** Ends the local copy without saving it. The last checkpoint stays and is free for other servers. */
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

/** Thrown when the reason for a pause disappeared before it began. */
export class CalledOff extends Error {}

export async function unlessCalledOff(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof CalledOff)) throw error;
  }
}
