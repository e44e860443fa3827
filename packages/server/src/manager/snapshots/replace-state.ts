import { asSandboxerError, type CheckpointReference, type Promotion, SandboxerError } from "@sandboxer/protocol";
import type { SandboxHandle, SandboxProcess, SnapshotPayload } from "../../backends/backend.ts";
import { imageKey } from "../../checkpoints/snapshot-record.ts";
import { acquireRequest } from "../lifecycle/acquire-request.ts";
import type { ManagerContext } from "../context.ts";
import { keyChoiceOf } from "../encryption.ts";
import { discardLostSandbox } from "../lifecycle/end-of-sandbox.ts";
import { switchCopy } from "../lifecycle/replace-copy.ts";
import { announceCopy, removeSpare } from "../ownership/spare-copy.ts";
import type { LiveSandbox, SandboxFacts } from "../live-sandbox.ts";
import { withGoodCopy } from "../saving/with-good-copy.ts";
import { acquireWithState } from "./portable/acquire-with-state.ts";
import { followHead } from "../saving/save.ts";
import { type NetworkAccess, openNetwork } from "../network/network-access.ts";
import type { Track } from "../observing/operations/tracked.ts";
import { withWorkFolder } from "../saving/work-folder.ts";
import { inStore } from "../stored-facts.ts";

export interface NewState {
  /** The snapshot that has the state. */
  readonly snapshotId: string;
  /** Facts of the sandbox that change with its state. */
  readonly changes: Pick<Partial<SandboxFacts>, "spec" | "about">;
  /** The state comes from a fork. */
  readonly promotion?: Promotion;
}

/** A running copy that is not yet the sandbox. */
interface NewCopy {
  readonly handle: SandboxHandle;
  readonly network: NetworkAccess;
  readonly processes: readonly SandboxProcess[];
  readonly checkpoint: CheckpointReference | undefined;
  readonly facts: SandboxFacts;
  /** The epoch of the sandbox from now on. */
  readonly epoch: number;
}

/** Throws if the backend cannot replace the state of a sandbox: snapshots that are only records cannot be loaded. */
export function checkReplaceable(context: ManagerContext, { facts }: LiveSandbox): void {
  if (context.backend(facts.backend).capabilities.snapshot !== "metadata") return;
  throw new SandboxerError("not_supported", `The backend ${facts.backend} cannot rewind a sandbox in place.`, {
    hint: "Restore the snapshot, which creates a new sandbox, then delete this one.",
  });
}

/**
 * Replaces the state of a sandbox with the state of a snapshot, under the same id and token. Runs in the sandbox's turn.
 * The new copy runs before one swap of the head commits it; only then is the current copy ended. If anything fails
 * before the swap, the sandbox continues as it was.
 */
export async function replaceState(
  context: ManagerContext,
  sandbox: LiveSandbox,
  next: NewState,
  track: Track,
): Promise<void> {
  sandbox.checkRunning();
  await sandbox.liveSaves.callOff();
  const mark = sandbox.unsaved.mark(context.nowMs);
  const copy = await makeCopy(context, sandbox, next, track);
  if (copy.checkpoint !== undefined) sandbox.unsaved.published({ ...mark, quiet: false }, context.nowMs);
  const old = switchTo(context, sandbox, copy);
  await context.reported("end of a replaced copy", old.destroy());
  await context.reported("removal of a replaced copy", removeSpare(context, sandbox.id));
  if (copy.checkpoint !== undefined) await followHead(context, sandbox, copy.checkpoint.name);
  track.lap("publish");
}

/** Whether the provider finds a sandbox by its id, so that a second copy needs an id of its own. */
function isKept(context: ManagerContext, { facts }: LiveSandbox): boolean {
  return context.backend(facts.backend).capabilities.outlivesServer;
}

async function makeCopy(context: ManagerContext, sandbox: LiveSandbox, next: NewState, track: Track): Promise<NewCopy> {
  const { snapshotId, changes } = next;
  const kept = isKept(context, sandbox);
  if (kept) await removeSpare(context, sandbox.id);
  const lineage = { ...sandbox.facts.lineage, snapshot: snapshotId };
  const copyIn = async (folder: string): Promise<NewCopy> => {
    const state = await context.snapshots.load(snapshotId, folder, { ...track.options, verifyBeside: true });
    track.lap("unpack");
    const copy = kept ? await announceCopy(context, sandbox) : sandbox.facts.copy;
    const facts = { ...sandbox.facts, ...changes, lineage, copy };
    const request = await acquireRequest(context, facts, track.options);
    const handle = await acquireWithState(context.backend(facts.backend), request, state, track.options);
    track.lap("backend");
    try {
      const network = await openNetwork(context, facts, handle);
      const processes = await handle.processes();
      // Others detect meanwhile if it ends or is lost to another server.
      sandbox.checkRunning();
      const checkpoint = sandbox.durable ? await save(context, sandbox, { snapshotId, state }, track) : undefined;
      sandbox.checkRunning();
      const epoch = await commit(context, sandbox, { facts, checkpoint, promotion: next.promotion });
      return { handle, network, processes, checkpoint, facts, epoch };
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

/** No head names the checkpoint yet. */
async function save(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { snapshotId, state }: { readonly snapshotId: string; readonly state: SnapshotPayload },
  track: Track,
): Promise<CheckpointReference> {
  const checkpoint = await context.durable.checkpoints.save(sandbox.id, state, {
    ...track.options,
    wallMs: context.options.clock.wallMs(),
    parent: sandbox.parentCheckpoint,
    base: imageKey(snapshotId),
    ...keyChoiceOf(sandbox),
  });
  track.lap("pack");
  track.sizeBytes = checkpoint.size_bytes;
  return checkpoint;
}

/** From here on, a server that claims the sandbox gets the new state, not the earlier one. Returns the epoch. */
async function commit(
  context: ManagerContext,
  sandbox: LiveSandbox,
  {
    facts,
    checkpoint,
    promotion,
  }: Pick<NewCopy, "facts" | "checkpoint"> & { readonly promotion: Promotion | undefined },
): Promise<number> {
  const { backend, copy } = sandbox.facts;
  const { spec, about, lineage } = inStore(facts);
  const before = inStore(sandbox.facts).spec;
  const place = isKept(context, sandbox) ? { copy: facts.copy, spare_copy: { backend, copy, spec: before } } : {};
  const replacement = { spec, about, lineage, ...place, checkpoint, promotion };
  return (await context.durable.ownership.replaceState(sandbox, replacement)).epoch;
}

/** The attached client is informed, and keeps its socket. */
function switchTo(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { handle, network, processes, checkpoint, facts, epoch }: NewCopy,
): SandboxHandle {
  sandbox.epoch = epoch;
  sandbox.client?.notify({ type: "rewinding" });
  if (checkpoint !== undefined) sandbox.parentCheckpoint = checkpoint.name;
  const { spec, about, lineage, copy } = facts;
  sandbox.newestImages = lineage.snapshot == null ? [] : [imageKey(lineage.snapshot)];
  sandbox.amend({ spec, about, lineage, copy });
  const old = switchCopy(context, sandbox, { handle, network }, processes);
  sandbox.client?.notify({ type: "rewound" });
  return old;
}
