import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import type { Capabilities } from "../../backends/backend.ts";
import { needsStore } from "../../checkpoints/snapshot-types.ts";
import type { CapturedState, NewSnapshot, SavedSnapshot } from "../../checkpoints/snapshot-types.ts";
import { imageKey } from "../../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "../context.ts";
import { proveInBackground } from "../saving/prove-snapshot.ts";
import { takeShownKey } from "../encryption.ts";
import { inTurnUntil } from "../saving/in-turn-until.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { noteProcesses, withNotes } from "../processes/process-notes.ts";
import { nearestImage, noteImage } from "../saving/nearest-image.ts";
import { captureWorkspace } from "./portable/capture-workspace.ts";
import { pruneSnapshots } from "../saving/retention.ts";
import { encodeFileList } from "./file-list.ts";
import { listFiles } from "./walk-files.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";
import { inStore } from "../stored-facts.ts";
import { withWorkFolder } from "../saving/work-folder.ts";

export interface CaptureRequest {
  readonly reason: NewSnapshot["reason"];
  readonly name?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Absent: the most that the backend supports. */
  readonly mode?: "full" | "filesystem" | "workspace" | undefined;
  /** Whether the snapshot takes its name from another snapshot that has it. */
  readonly replaceName?: boolean;
}

/**
 * Takes a snapshot of a running sandbox, which keeps running. Captures of one sandbox run one after the other. The file
 * list is made right before: files written in that moment may be in the capture and not in the list.
 */
export async function captureSnapshot(
  context: ManagerContext,
  sandbox: LiveSandbox,
  request: CaptureRequest,
  options: VerbOptions = {},
): Promise<SavedSnapshot> {
  const { backend } = sandbox.facts;
  const library = context.snapshots;
  const mode = checkCapture(context, backend, request);
  takeShownKey(context, sandbox, options.encryption);
  const operation = request.reason === "named" ? "filesystem_snapshot" : "snapshot";
  const work = { operation, sandboxId: sandbox.id, backend, reason: request.reason } as const;
  const save = (onCaptured: () => void): Promise<SavedSnapshot> =>
    tracked(context, work, options, async (track) => {
      sandbox.checkRunning();
      const snapshot = describe(context, sandbox, request, mode);
      options.operation?.concerns({ snapshotId: snapshot.id });
      const base = await nearestImage(context, sandbox);
      const saved = await withWorkFolder(context.options.workDirectory, (folder) => {
        const captured = async (): Promise<CapturedState> => {
          const state = await capture(context, sandbox, snapshot, folder, track);
          onCaptured();
          return state;
        };
        const replaceName = request.replaceName === true;
        return library.save(snapshot, captured, {
          ...track.options,
          replaceName,
          base,
          presentedKey: sandbox.clientKey,
        });
      });
      if (mode === "full") noteImage(sandbox, imageKey(snapshot.id));
      track.lap("pack");
      track.sizeBytes = saved.snapshot.size_bytes;
      tell(context, sandbox, saved);
      context.inBackground("removal of old snapshots", pruneSnapshots(context, sandbox));
      proveInBackground(context, saved.snapshot, sandbox.clientKey);
      return saved;
    });
  return await inTurnUntil(context, sandbox, save);
}

/** The mode of a capture. Refuses modes that cannot be captured or kept here, before anything is delayed for it. */
export function checkCapture(
  context: ManagerContext,
  backend: string,
  request: Pick<CaptureRequest, "mode">,
): NewSnapshot["mode"] {
  const { keepsBytes } = context.snapshots;
  const mode = modeOf(context.backend(backend).capabilities, request.mode, backend);
  if ((mode === "full" || mode === "workspace") && !keepsBytes) throw needsStore();
  return mode;
}

function modeOf(
  { snapshot, filesystemSnapshot, files }: Capabilities,
  wanted: CaptureRequest["mode"],
  backend: string,
): NewSnapshot["mode"] {
  const abilities = { filesystem: filesystemSnapshot, full: snapshot === "full", workspace: files };
  const can = wanted === undefined ? snapshot !== "none" : abilities[wanted];
  if (can && wanted !== undefined) return wanted;
  if (can && snapshot !== "none") return snapshot;
  const what = wanted === undefined ? "no snapshots" : `no ${wanted} snapshots`;
  throw new SandboxerError("not_supported", `The backend ${backend} has ${what}.`, {
    details: { snapshot, filesystem_snapshot: filesystemSnapshot, files },
  });
}

function describe(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { reason, name, labels }: CaptureRequest,
  mode: NewSnapshot["mode"],
): NewSnapshot {
  const { facts } = sandbox;
  return {
    id: randomUUID(),
    name: name ?? null,
    reason,
    mode,
    labels: { ...labels },
    sandbox_id: sandbox.id,
    sandbox_name: facts.about.name,
    parent: facts.lineage.snapshot ?? null,
    created_at: new Date(context.options.clock.wallMs()).toISOString(),
    backend: facts.backend,
    profile: facts.about.profile,
    spec: inStore(facts).spec,
    key: facts.about.key,
    spec_hash: facts.about.spec_hash,
    flags: { ...facts.flags },
    idle_timeout: inStore(facts).idle_timeout,
    max_loss: facts.about.max_loss,
    retention: facts.about.retention,
    affinity: facts.about.affinity,
    encryption: facts.about.encryption,
  };
}

async function capture(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { id: snapshotId, mode }: Pick<NewSnapshot, "id" | "mode">,
  folder: string,
  track: Track,
): Promise<CapturedState> {
  const { handle, facts } = sandbox;
  const backend = context.backend(facts.backend);
  const hasFiles = backend.capabilities.files;
  const list = hasFiles ? await listFiles(handle.files, context.options.clock) : undefined;
  if (hasFiles) track.lap("files");
  // Backends that only keep a record have no other mode.
  const asked = mode === "full" ? "full" : "filesystem";
  const { diskBytes } = facts.spec.resources;
  const options = { ...track.options, snapshotId, onStill: track.paused };
  const notes = mode === "full" ? await noteProcesses(sandbox) : [];
  const captured =
    mode === "workspace"
      ? await captureWorkspace({ backend, handle, diskBytes, onStill: track.paused }, folder, options)
      : await handle.snapshot(folder, { ...options, mode: asked, leaveRunning: true });
  const state = await withNotes(captured, notes, folder);
  track.lap("save");
  return list === undefined ? { state } : { state, files: await encodeFileList(list) };
}

function tell(context: ManagerContext, sandbox: LiveSandbox, { snapshot, replacedId }: SavedSnapshot): void {
  const { id: snapshot_id, name, mode, reason, size_bytes, parent } = snapshot;
  const data = { snapshot_id, name, mode, reason, size_bytes, parent, replaced: replacedId ?? null };
  context.events.append({ type: "snapshot.created", sandboxId: sandbox.id, data });
}
