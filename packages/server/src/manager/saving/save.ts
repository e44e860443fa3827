import { asSandboxerError, SandboxerError, type CheckpointReference } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { endRisk } from "./risk.ts";
import type { DurableStore } from "../durable-store.ts";
import { keyChoiceOf } from "../encryption.ts";
import { discardLostSandbox } from "../lifecycle/end-of-sandbox.ts";
import { freezeIfDue } from "../ownership/freeze.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { nearestImage } from "./nearest-image.ts";
import { pruneCheckpoints } from "./retention.ts";
import { dropExecution } from "../processes/start-process.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";
import { withWorkFolder } from "./work-folder.ts";

export interface SaveOptions extends VerbOptions {
  /** For the log. */
  readonly reason: string;
  /** The last look before the save begins, when nothing else is under way any more; throws to call it off. */
  readonly lastLook?: () => void;
  /** What is to be done between that look and the save. */
  readonly prepare?: () => Promise<void>;
}

/**
 * Saves everything of a sandbox, publishes the image and gives the sandbox up in one step, and ends the copy here. When
 * any of it fails the sandbox goes on as if nothing had happened, unless another server has taken it meanwhile.
 */
export async function saveAndRelease(
  context: ManagerContext,
  sandbox: LiveSandbox,
  options: SaveOptions,
): Promise<CheckpointReference> {
  checkDurable(sandbox);
  return sandbox.queue.run(async () => {
    await sandbox.liveSaves.callOff();
    options.lastLook?.();
    sandbox.moveTo("saving");
    // Before anything of the sandbox rests: what these readers have not acknowledged is in the image.
    sandbox.processes.quiesce();
    const { reason, prepare } = options;
    const work = { operation: "checkpoint", sandboxId: sandbox.id, backend: sandbox.facts.backend, reason } as const;
    try {
      return await tracked(context, work, options, async (track) => {
        await prepare?.();
        const checkpoint = await save(context, sandbox, reason, track);
        track.sizeBytes = checkpoint.size_bytes;
        return checkpoint;
      });
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      await goOn(context, sandbox, error);
      throw error;
    }
  });
}

export function checkDurable(sandbox: LiveSandbox): void {
  if (sandbox.durable) return;
  throw new SandboxerError("checkpoint_disabled", "Checkpointing is not enabled for this sandbox.", {
    hint: "Create the sandbox with enable_checkpoint: true.",
  });
}

async function save(
  context: ManagerContext,
  sandbox: LiveSandbox,
  reason: string,
  track: Track,
): Promise<CheckpointReference> {
  const { checkpoints, ownership } = context.durable;
  const { handle } = sandbox;
  // An execution whose end its client knows of has no business in the next life.
  if (sandbox.processes.execution?.told === true) await dropExecution(sandbox);
  const stoppedMs = context.nowMs;
  sandbox.stoppedMs = stoppedMs;
  // The state is that of this moment; the next owner can tell from it for how long nobody ran the sandbox.
  const wallMs = context.options.clock.wallMs();
  const checkpoint = await withWorkFolder(context.options.workDirectory, async (folder) => {
    const state = await handle.snapshot(folder, { ...track.options, mode: "full", leaveRunning: false });
    track.lap("save");
    const relatives = { parent: sandbox.parentCheckpoint, base: await nearestImage(context, sandbox) };
    return checkpoints.save(sandbox.id, state, { ...track.options, wallMs, ...relatives, ...keyChoiceOf(sandbox) });
  });
  track.lap("pack");
  // When this fails the image stays: the head may name it all the same. If not, collection finds it.
  await ownership.publishAndRelease(sandbox.id, checkpoint);
  // The head has moved: from here on there is no way back, and the views only follow.
  await followHead(context, sandbox, checkpoint.name);
  track.lap("publish");
  track.paused(context.nowMs - stoppedMs);
  const { name, size_bytes, parent } = checkpoint;
  const data = { name, size_bytes, parent, reason };
  context.events.append({ type: "checkpoint.created", sandboxId: sandbox.id, data });
  endRisk(context, sandbox);
  // Its end while it was published changes nothing: it is saved.
  if (sandbox.state !== "gone") sandbox.moveTo("gone");
  context.behind("end of a saved sandbox", handle.destroy());
  return checkpoint;
}

/** What comes after the head has moved to a checkpoint and before anyone is told: views, and what it has made old. */
export async function followHead(
  context: ManagerContext,
  sandbox: Pick<LiveSandbox, "id" | "facts">,
  name: string,
): Promise<void> {
  const { id: sandboxId } = sandbox;
  await bringLatestToHead(context.durable, sandboxId, name).catch((error: unknown) => {
    context.options.observer.problem("latest could not be written; the next owner repairs it", { sandboxId, error });
  });
  context.behind("removal of old checkpoints", pruneCheckpoints(context, sandbox, name));
}

/** Somebody may have published more while this server stalled: then `latest` must not go back, and the head says to what. */
async function bringLatestToHead(durable: DurableStore, sandboxId: string, name: string): Promise<void> {
  await durable.checkpoints.writeLatest(sandboxId, name);
  const present = (await durable.ownership.read(sandboxId))?.checkpoint?.name ?? name;
  if (present !== name) await bringLatestToHead(durable, sandboxId, present);
}

async function goOn(context: ManagerContext, sandbox: LiveSandbox, error: SandboxerError): Promise<void> {
  if (error.code === "lease_lost") return discardLostSandbox(context, sandbox, error);
  // A sandbox that ended during its save has been taken care of by its end.
  if (sandbox.state !== "saving") return;
  try {
    if (context.durable.ownership.frozen) {
      sandbox.moveTo("running");
      freezeIfDue(context, sandbox);
    } else {
      await sandbox.handle.resume();
      sandbox.moveTo("running");
    }
    sandbox.touch(context.nowMs);
  } catch (failure) {
    context.options.observer.problem("a sandbox could not go on after a failed save", {
      sandboxId: sandbox.id,
      error: failure,
    });
    await context.reported("end of a sandbox that could not go on", sandbox.handle.destroy());
    // Also when its end has failed: a copy that nobody can use must not keep the stored one from others.
    if ((sandbox.state as string) !== "gone") sandbox.moveTo("gone");
    context.behind("release of a sandbox that could not go on", context.durable.ownership.release(sandbox.id));
  }
}
