import { asSandboxerError, type CheckpointReference, type Lineage, SandboxerError } from "@sandboxer/protocol";
import type { SandboxHandle, SandboxProcess, SnapshotPayload } from "../../backends/backend.ts";
import { imageKey } from "../../checkpoints/snapshot-record.ts";
import { acquireRequest } from "../lifecycle/acquire-request.ts";
import type { ManagerContext } from "../context.ts";
import { checkRewindTo, keyChoiceOf } from "../encryption.ts";
import { discardLostSandbox } from "../lifecycle/end-of-sandbox.ts";
import { switchCopy } from "../lifecycle/replace-copy.ts";
import { announceCopy, removeSpare, takePlace } from "../ownership/spare-copy.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { withGoodCopy } from "../saving/with-good-copy.ts";
import { acquireWithState } from "./portable/acquire-with-state.ts";
import { checkLoadable } from "./portable/loadable.ts";
import { followHead } from "../saving/save.ts";
import { findSnapshot, labelOf } from "./source.ts";
import { type NetworkAccess, openNetwork } from "../network/network-access.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";
import { withWorkFolder } from "../saving/work-folder.ts";

/** A running copy that is not yet the sandbox. */
interface NewCopy {
  readonly handle: SandboxHandle;
  readonly network: NetworkAccess;
  readonly processes: readonly SandboxProcess[];
  readonly checkpoint: CheckpointReference | undefined;
  /** Its number, if its provider distinguishes copies by number. */
  readonly copy: number;
}

/**
 * Rewinds a sandbox to a snapshot, with the same id, token and epoch. The new copy runs, and the head names it or its
 * state, before the current one is ended: if anything fails, the sandbox continues as it was.
 */
export async function rewindSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  idOrName: string,
  options: VerbOptions = {},
): Promise<void> {
  checkCan(context, sandbox);
  const snapshot = await findSnapshot(context, idOrName);
  checkLoadable(context, context.backend(sandbox.facts.backend), labelOf(snapshot));
  await checkRewindTo(context, sandbox, snapshot);
  options.operation?.concerns({ snapshotId: snapshot.id });
  const work = { operation: "rewind", sandboxId: sandbox.id, backend: sandbox.facts.backend } as const;
  await sandbox.queue.run(() =>
    tracked(context, work, options, async (track) => {
      sandbox.checkRunning();
      await sandbox.liveSaves.callOff();
      const mark = sandbox.unsaved.mark(context.nowMs);
      const lineage = { ...sandbox.facts.lineage, snapshot: snapshot.id };
      const copy = await makeCopy(context, sandbox, { snapshotId: snapshot.id, lineage }, track);
      if (copy.checkpoint !== undefined) sandbox.unsaved.published({ ...mark, quiet: false }, context.nowMs);
      const old = switchTo(context, sandbox, copy, lineage);
      await context.reported("end of the copy before a rewind", old.destroy());
      await context.reported("removal of the copy before a rewind", removeSpare(context, sandbox.id));
      if (copy.checkpoint !== undefined) {
        await context.reported("lineage after a rewind", context.durable.ownership.update(sandbox, { lineage }));
        await followHead(context, sandbox, copy.checkpoint.name);
      }
      track.lap("publish");
      context.events.append({
        type: "sandbox.rewound",
        sandboxId: sandbox.id,
        data: { snapshot_id: snapshot.id, name: snapshot.name },
      });
    }),
  );
}

/** Whether the provider finds a sandbox by its id, so that a second copy needs an id of its own. */
function isKept(context: ManagerContext, { facts }: LiveSandbox): boolean {
  return context.backend(facts.backend).capabilities.outlivesServer;
}

/** A backend whose snapshots are only records has nothing to load. */
function checkCan(context: ManagerContext, { facts }: LiveSandbox): void {
  if (context.backend(facts.backend).capabilities.snapshot !== "metadata") return;
  throw new SandboxerError("not_supported", `The backend ${facts.backend} cannot rewind a sandbox in place.`, {
    hint: "Restore the snapshot, which creates a new sandbox, then delete this one.",
  });
}

async function makeCopy(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { snapshotId, lineage }: { readonly snapshotId: string; readonly lineage: Lineage },
  track: Track,
): Promise<NewCopy> {
  const kept = isKept(context, sandbox);
  if (kept) await removeSpare(context, sandbox.id);
  const copyIn = async (folder: string): Promise<NewCopy> => {
    const state = await context.snapshots.load(snapshotId, folder, { ...track.options, verifyBeside: true });
    track.lap("unpack");
    const copy = kept ? await announceCopy(context, sandbox) : sandbox.facts.copy;
    const request = await acquireRequest(context, { ...sandbox.facts, copy }, track.options);
    const backend = context.backend(sandbox.facts.backend);
    const handle = await acquireWithState(backend, request, state, track.options);
    track.lap("backend");
    try {
      const network = await openNetwork(context, sandbox.facts, handle);
      const processes = await handle.processes();
      // Others detect meanwhile if it ends or is lost to another server.
      sandbox.checkRunning();
      const checkpoint = sandbox.durable ? await publish(context, sandbox, { snapshotId, state }, track) : undefined;
      sandbox.checkRunning();
      if (kept) await takePlace(context, sandbox, { copy, lineage });
      return { handle, network, processes, checkpoint, copy };
    } catch (thrown) {
      await context.reported("end of a discarded copy", handle.destroy());
      const error = asSandboxerError(thrown);
      if (error.code === "lease_lost") await discardLostSandbox(context, sandbox, error);
      throw thrown;
    }
  };
  try {
    return await withGoodCopy(() => withWorkFolder(context.options.workDirectory, copyIn));
  } catch (error) {
    if (kept) await context.reported("removal of a discarded copy", removeSpare(context, sandbox.id));
    throw error;
  }
}

/** From here on, a server that claims the sandbox gets the state of the snapshot, not the earlier one. */
async function publish(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { snapshotId, state }: { readonly snapshotId: string; readonly state: SnapshotPayload },
  track: Track,
): Promise<CheckpointReference> {
  const { checkpoints, ownership } = context.durable;
  const wallMs = context.options.clock.wallMs();
  const parent = sandbox.parentCheckpoint;
  const checkpoint = await checkpoints.save(sandbox.id, state, {
    ...track.options,
    wallMs,
    parent,
    base: imageKey(snapshotId),
    ...keyChoiceOf(sandbox),
  });
  track.lap("pack");
  track.sizeBytes = checkpoint.size_bytes;
  await ownership.publish(sandbox, checkpoint);
  return checkpoint;
}

/** The attached client is told, and keeps its socket. */
function switchTo(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { handle, network, processes, checkpoint, copy }: NewCopy,
  lineage: Lineage,
): SandboxHandle {
  sandbox.client?.notify({ type: "rewinding" });
  if (checkpoint !== undefined) sandbox.parentCheckpoint = checkpoint.name;
  sandbox.newestImages = lineage.snapshot == null ? [] : [imageKey(lineage.snapshot)];
  sandbox.amend({ lineage, copy });
  const old = switchCopy(context, sandbox, { handle, network }, processes);
  sandbox.client?.notify({ type: "rewound" });
  return old;
}
