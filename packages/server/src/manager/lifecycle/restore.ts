import { asSandboxerError, SandboxerError, type Head } from "@sandboxer/protocol";
import type { SandboxHandle, SandboxProcess } from "../../backends/backend.ts";
import type { OpenImage } from "../../checkpoints/open-image.ts";
import { checkpointKey, checkpointMs } from "../../checkpoints/checkpoint-names.ts";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import { acquireRequest } from "./acquire-request.ts";
import type { SandboxClient } from "../client.ts";
import type { ManagerContext } from "../context.ts";
import { checkKeysFor, encryptionOfHead, takeShownKey } from "../encryption.ts";
import { leaseLost, watchForEnd } from "./end-of-sandbox.ts";
import { leavesNothing } from "../../lease/stored-head.ts";
import { checkMachine, imageOf } from "../ownership/fits-here.ts";
import { claimStored } from "../ownership/claim-stored.ts";
import { abandonCopy, eraseHead } from "../ownership/residence.ts";
import { removeSpare } from "../ownership/spare-copy.ts";
import { freezeIfDue } from "../ownership/freeze.ts";
import { importHead } from "../ownership/import-head.ts";
import { namingWholeCheckpoint } from "../observing/integrity/whole-checkpoint.ts";
import { LiveSandbox, type SandboxFacts } from "../live-sandbox.ts";
import { withGoodCopy } from "../saving/with-good-copy.ts";
import { type NetworkAccess, openNetwork } from "../network/network-access.ts";
import { checkpointNotFound, notFound } from "../not-found.ts";
import { acquireFromSnapshot } from "../snapshots/acquire-from-snapshot.ts";
import { acquireWithState } from "../snapshots/portable/acquire-with-state.ts";
import { storedFacts } from "../stored-facts.ts";
import { TakeoverEvent } from "../ownership/takeover-event.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";
import { withWorkFolder } from "../saving/work-folder.ts";

export interface RestoreRequest {
  readonly sandboxId: string;
  /** Absent: no client is attached. */
  readonly client?: SandboxClient;
  /** An older checkpoint to resume from, instead of the newest. */
  readonly checkpoint: string | undefined;
  /** Start from this snapshot because the provider lost the sandbox. */
  readonly snapshot?: StoredSnapshot;
  /** Claim it only if no live server owns it: an owner is not asked to hand it off. Then `lease_held`. */
  readonly onlyIfFree?: boolean;
  /** Called around the claim; `waiting` when another server was asked to hand the sandbox off. */
  readonly onOwnership: (step: "acquiring" | "waiting" | "acquired", head: Head) => void;
}

/**
 * Claims a sandbox that no server runs, or that its server hands off, and restores it from the store or at its
 * provider, with its executions and unread output.
 */
export async function restoreSandbox(
  context: ManagerContext,
  request: RestoreRequest & { readonly head: Head | undefined },
  options: VerbOptions,
): Promise<LiveSandbox> {
  const { durable, sandboxId } = { durable: context.durable, sandboxId: request.sandboxId };
  const { encryption: keys } = options;
  const head = request.head ?? (await importHead(durable, sandboxId, { presentedKey: keys?.presentedKey }));
  if (head.state === "deleted" || (head.owner === null && !hasState(head))) throw notFound(sandboxId);
  if (request.checkpoint !== undefined && head.residence === "provider") throw hasNoCheckpoints(head.backend);
  const { checkpoint } = request;
  if (checkpoint !== undefined && !(await hasCheckpoint(context, sandboxId, head, checkpoint)))
    throw checkpointNotFound(checkpoint);
  await checkKeysFor(context, sandboxId, head, { checkpoint, presentedKey: keys?.presentedKey });
  const stored = storedFacts(sandboxId, head);
  const encryption = await encryptionOfHead(context, sandboxId, head);
  const facts = { ...stored, about: { ...stored.about, encryption } };
  const sandbox = new LiveSandbox(facts, "restoring", context.nowMs, context.onMove(sandboxId));
  takeShownKey(context, sandbox, keys);
  context.admit(sandbox);
  const work = { operation: "restore", sandboxId, backend: head.backend } as const;
  try {
    const image = await imageOf(context, sandboxId, head, { name: checkpoint, presentedKey: keys?.presentedKey });
    // Before the head is claimed: its owner would hand it off for nothing.
    if (image !== undefined) checkMachine(context, head.backend, image.manifest, checkpoint ?? head.checkpoint?.name);
    return await tracked(context, work, options, async (track) => {
      request.onOwnership("acquiring", head);
      const takeover = new TakeoverEvent(context, sandboxId);
      const claimed = await claimStored(context, sandboxId, {
        owner: head.owner,
        ...(request.onlyIfFree === true ? {} : { handoffTimeoutMs: context.options.handoffTimeoutMs }),
        onWaiting: (owner) => {
          takeover.asked(owner);
          request.onOwnership("waiting", head);
        },
      });
      sandbox.epoch = claimed.epoch;
      takeover.claimed();
      request.onOwnership("acquired", claimed);
      track.lap("claim");
      const { handle, processes, network } = await bringBack(context, claimed, { ...request, image }, track);
      if (request.snapshot !== undefined) sandbox.amend(changedByLoad(claimed, request.snapshot));
      sandbox.parentCheckpoint = request.checkpoint ?? claimed.checkpoint?.name ?? null;
      if (request.client !== undefined) sandbox.attach(request.client, context.nowMs);
      sandbox.started(handle, network);
      takeover.runs(claimed, track);
      freezeIfDue(context, sandbox);
      watchForEnd(context, sandbox, processes);
      context.inBackground("removal of a leftover copy", removeSpare(context, sandboxId));
      return sandbox;
    });
  } catch (thrown) {
    if (sandbox.state !== "gone") sandbox.moveTo("gone");
    throw asSandboxerError(thrown);
  }
}

interface LoadRequest extends RestoreRequest {
  /** The image that it had before it was claimed, if that could be read. */
  readonly image: OpenImage | undefined;
}

/**
 * The restored sandbox with its executions. On failure the sandbox is released again, or removed if nothing is left of
 * it.
 */
async function bringBack(
  context: ManagerContext,
  head: Head,
  request: LoadRequest,
  track: Track,
): Promise<{ handle: SandboxHandle; processes: readonly SandboxProcess[]; network: NetworkAccess }> {
  let handle: SandboxHandle | undefined;
  try {
    await context.hasPlace(track.options.signal);
    handle = await load(context, head, request, track);
    const network = await openNetwork(context, storedFacts(request.sandboxId, head), handle);
    const processes = await handle.processes();
    checkStillOwned(context, request.sandboxId, head);
    return { handle, processes, network };
  } catch (error) {
    const facts = storedFacts(request.sandboxId, head);
    if (handle !== undefined)
      await context.reported("end of a sandbox that could not be restored", abandonCopy({ handle, facts }));
    const release = leavesNothing(head)
      ? eraseHead(context, request.sandboxId)
      : context.durable.ownership.release({ id: request.sandboxId, epoch: head.epoch });
    await context.reported("release of a sandbox that could not be restored", release);
    const damaged = request.checkpoint ?? head.checkpoint?.name;
    if (damaged === undefined) throw error;
    const named = { sandboxId: request.sandboxId, head, damaged };
    throw await namingWholeCheckpoint(context, named, error, track.options);
  }
}

/** A restore takes long enough for another server to claim the sandbox. */
function checkStillOwned({ durable }: ManagerContext, sandboxId: string, claimed: Head): void {
  if (!durable.ownership.holds({ id: sandboxId, epoch: claimed.epoch })) throw leaseLost();
}

async function load(context: ManagerContext, head: Head, request: LoadRequest, track: Track): Promise<SandboxHandle> {
  const { checkpoints } = context.durable;
  const { sandboxId } = request;
  if (request.snapshot !== undefined) return await loadSnapshot(context, sandboxId, head, request.snapshot, track);
  if (head.residence === "provider") return findAtProvider(context, sandboxId, head, track);
  const newest = head.checkpoint;
  const name = request.checkpoint ?? newest?.name;
  // A sandbox that was never saved starts from its origin.
  const snapshotId = name === undefined ? head.lineage.snapshot : undefined;
  if (name === undefined && snapshotId == null) throw notFound(sandboxId);
  const sha256 = name === newest?.name ? newest?.sha256 : undefined;
  const image = request.image?.key === checkpointKey(sandboxId, name ?? "") ? request.image : undefined;
  return await withGoodCopy(() =>
    withWorkFolder(context.options.workDirectory, async (folder) => {
      const digest = sha256 === undefined ? {} : { sha256 };
      const state =
        name === undefined
          ? await context.snapshots.load(snapshotId ?? "", folder, { ...track.options, verifyBeside: true })
          : await checkpoints.load(sandboxId, name, folder, { ...track.options, ...digest, image, verifyBeside: true });
      track.lap("unpack");
      const backend = context.backend(head.backend);
      try {
        const request = await acquireRequest(context, storedFacts(sandboxId, head), track.options);
        return await acquireWithState(backend, request, state, track.options);
      } catch (thrown) {
        const error = asSandboxerError(thrown);
        throw new SandboxerError(error.code, `${name ?? `snapshot ${snapshotId}`}: ${error.message}`, {
          cause: thrown,
          hint: error.hint,
          details: error.details,
        });
      } finally {
        track.lap("backend");
      }
    }),
  );
}

/** Starts a new copy from a snapshot for a sandbox whose copy the provider lost. */
async function loadSnapshot(
  context: ManagerContext,
  sandboxId: string,
  head: Head,
  snapshot: StoredSnapshot,
  track: Track,
): Promise<SandboxHandle> {
  const { ownership } = context.durable;
  const holding = { id: sandboxId, epoch: head.epoch };
  const changes = changedByLoad(head, snapshot);
  await ownership.update(holding, { spare_copy: { backend: head.backend, copy: changes.copy } });
  const facts = { ...storedFacts(sandboxId, head), ...changes };
  const handle = await acquireFromSnapshot(context, facts, snapshot.id, track);
  try {
    await ownership.update(holding, { ...changes, spare_copy: null });
    return handle;
  } catch (error) {
    await context.reported("end of a discarded copy", handle.destroy());
    throw error;
  }
}

function changedByLoad(head: Head, snapshot: StoredSnapshot): Pick<SandboxFacts, "copy" | "lineage"> {
  return { copy: (head.copy ?? 0) + 1, lineage: { ...head.lineage, snapshot: snapshot.id } };
}

/** By its id, not by its key: another installation may have created it. */
async function findAtProvider(
  context: ManagerContext,
  sandboxId: string,
  head: Head,
  track: Track,
): Promise<SandboxHandle> {
  const { identity: _, ...request } = await acquireRequest(context, storedFacts(sandboxId, head), track.options);
  const handle = await context.backend(head.backend).tryResume(request, track.options);
  track.lap("backend");
  if (handle !== undefined) return handle;
  throw new SandboxerError("sandbox_failed", `The backend ${head.backend} no longer has the sandbox.`, {
    hint: "Restore a snapshot of it, or delete it and create a new one.",
    details: { state: "unreachable" },
  });
}

function hasNoCheckpoints(backend: string): SandboxerError {
  return new SandboxerError("checkpoint_disabled", `The backend ${backend} keeps the sandbox; it has no checkpoints.`);
}

/**
 * The newest checkpoint exists or is damaged; any other may have been removed, or never existed. Invalid names are
 * refused later.
 */
async function hasCheckpoint(
  { durable }: ManagerContext,
  sandboxId: string,
  head: Head,
  name: string,
): Promise<boolean> {
  if (name === head.checkpoint?.name || checkpointMs(name) === undefined) return true;
  return await durable.checkpoints.hasImage(checkpointKey(sandboxId, name));
}

/** Whether it can be resumed. */
export function hasState({ checkpoint, lineage, residence }: Head): boolean {
  return residence === "provider" || checkpoint !== null || lineage.snapshot != null;
}
