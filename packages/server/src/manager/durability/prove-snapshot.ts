import { randomUUID } from "node:crypto";
import { asSandboxerError, SandboxerError, type SnapshotInfo } from "@sandboxer/protocol";
import type { AcquireRequest, SandboxBackend } from "../../backends/backend.ts";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import { cutMessage } from "../../support/cut-message.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";
import type { ManagerContext } from "../context.ts";
import { acquireWithState } from "../portable/acquire-with-state.ts";
import { checkLoadable } from "../portable/loadable.ts";
import { getSnapshot } from "../snapshots.ts";
import { findSnapshot, labelOf } from "../snapshot-source.ts";
import { parseStoredSpec } from "../stored-facts.ts";
import { tracked, type Track, type VerbOptions } from "../tracked.ts";
import { withWorkFolder } from "../work-folder.ts";

const PING_MS = 30_000;

/** What says nothing of the snapshot: another server, or this one at another time, may find out. */
const NO_VERDICT: ReadonlySet<string> = new Set([
  "snapshot_not_found",
  "not_supported",
  "image_incompatible",
  "limit_reached",
  "draining",
  "no_space",
  "store_unavailable",
  "backend_unavailable",
  // A machine that has too much to do, or too little room.
  "timeout",
  "internal",
  // An encrypted one whose key is not here.
  "key_required",
  "wrong_key",
  "key_unavailable",
]);

/**
 * Restores a snapshot into a sandbox that nobody can reach, hears whether it answers, and ends it. The record says how
 * that went. It has no network and no secrets, is in no list, and ends with this server.
 */
export async function proveSnapshot(
  context: ManagerContext,
  idOrName: string,
  options: VerbOptions = {},
): Promise<SnapshotInfo> {
  const snapshot = await findSnapshot(context, idOrName);
  const backend = context.backend(snapshot.backend);
  checkProvable(context, snapshot, backend);
  options.operation?.concerns({ snapshotId: snapshot.id });
  const work = { operation: "prove", sandboxId: snapshot.sandbox_id, backend: backend.name } as const;
  const proof = context.proofs.run((stopped) => {
    const signal = options.signal === undefined ? stopped : AbortSignal.any([options.signal, stopped]);
    return tracked(context, work, { ...options, signal }, async (track) => {
      checkRoom(context);
      try {
        await restoreAndAsk(context, snapshot, backend, track);
      } catch (thrown) {
        const error = asSandboxerError(signal.aborted ? signal.reason : thrown);
        if (signal.aborted || NO_VERDICT.has(error.code)) throw error;
        await noteFailure(context, snapshot, error);
        throw unproven(snapshot, error);
      }
      await noteSuccess(context, snapshot, backend);
      track.lap("record");
    });
  });
  // A server that ends waits for the end of what it has started.
  const ended = proof.catch(() => {});
  context.background.add(ended);
  void ended.finally(() => context.background.delete(ended));
  await proof;
  return await getSnapshot(context, snapshot.id);
}

/** Whether a snapshot can be restored by way of trial at all. */
export function isProvable(context: ManagerContext, snapshot: StoredSnapshot): boolean {
  try {
    checkProvable(context, snapshot, context.backend(snapshot.backend));
    return true;
  } catch {
    return false;
  }
}

function checkProvable(context: ManagerContext, snapshot: StoredSnapshot, backend: SandboxBackend): void {
  const hint = "Restore it, look at the new sandbox, and destroy that.";
  if (backend.capabilities.outlivesServer) {
    const why = `The backend ${backend.name} keeps sandboxes when the server ends, so a test restore could stay behind.`;
    throw new SandboxerError("not_supported", why, { hint });
  }
  const { spec } = parseStoredSpec(`snapshots/${snapshot.id}/record.json`, snapshot.spec);
  if (snapshot.mode === "full" && spec.network !== "none") {
    const why = "What was running with a network would be heard outside if it were restored to prove the snapshot.";
    throw new SandboxerError("not_supported", why, { hint });
  }
  if (snapshot.mode === "metadata") {
    throw new SandboxerError("not_supported", "The snapshot holds a record only: there is nothing to restore.");
  }
  checkLoadable(context, backend, labelOf(snapshot));
}

function checkRoom({ sandboxes, options }: ManagerContext): void {
  if (sandboxes.size < options.maxSandboxes) return;
  throw new SandboxerError("limit_reached", `The server runs ${sandboxes.size} sandboxes, which is its limit.`, {
    hint: "A test restore needs a place too: try again when a sandbox has ended.",
  });
}

async function restoreAndAsk(
  context: ManagerContext,
  snapshot: StoredSnapshot,
  backend: SandboxBackend,
  track: Track,
): Promise<void> {
  const { signal } = track.options;
  await withWorkFolder(context.options.workDirectory, async (folder) => {
    const state = await context.snapshots.load(snapshot.id, folder, track.options);
    track.lap("unpack");
    const handle = await acquireWithState(backend, requestFor(snapshot), state, track.options);
    track.lap("backend");
    try {
      await unlessAborted(handle.ping({ signal: AbortSignal.timeout(PING_MS) }), signal);
      track.lap("answer");
    } finally {
      await context.reported("end of a test restore", handle.destroy());
    }
  });
}

/** As it was, under an id that nobody knows; without a network, secrets, and commands that would need them. */
function requestFor({ id, spec: stored }: StoredSnapshot): AcquireRequest {
  const { spec } = parseStoredSpec(`snapshots/${id}/record.json`, stored);
  const { secretRefs: _secrets, setup: _setup, ...rest } = spec;
  return { sandboxId: randomUUID(), spec: { ...rest, network: "none" }, apart: true };
}

async function noteSuccess(context: ManagerContext, snapshot: StoredSnapshot, backend: SandboxBackend): Promise<void> {
  const { details } = await backend.probe();
  const version = details?.["version"] ?? details?.["engineVersion"];
  const proven = { at: now(context), engine: version === undefined ? backend.name : `${backend.name} ${version}` };
  await context.snapshots.amend(snapshot.id, { proof: { proven, unproven: null } });
  tell(context, snapshot, "snapshot.proven", proven);
}

async function noteFailure(context: ManagerContext, snapshot: StoredSnapshot, error: SandboxerError): Promise<void> {
  const failure = { at: now(context), reason: cutMessage(error.message) };
  const noted = context.snapshots.amend(snapshot.id, { proof: { proven: null, unproven: failure } });
  await context.reported("record of a snapshot that could not be proven", noted);
  tell(context, snapshot, "snapshot.unproven", failure);
}

function unproven({ id, name }: StoredSnapshot, cause: SandboxerError): SandboxerError {
  const { code, message, details } = cause;
  return new SandboxerError(code, `The snapshot ${name ?? id} could not be restored by way of trial: ${message}`, {
    cause,
    hint: "Take another one while its sandbox is there, and look at what the server's log says of this one.",
    details,
  });
}

function tell(context: ManagerContext, { id, name, sandbox_id }: StoredSnapshot, type: string, data: object): void {
  context.events.append({ type, sandboxId: sandbox_id, data: { snapshot_id: id, name, ...data } });
}

function now({ options }: ManagerContext): string {
  return new Date(options.clock.wallMs()).toISOString();
}
