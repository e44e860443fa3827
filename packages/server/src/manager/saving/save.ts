import { SandboxerError, type CheckpointReference } from "@sandboxer/protocol";
import type { SnapshotOptions, SnapshotPayload } from "../../backends/backend.ts";
import type { SavingContext } from "../room-contexts.ts";
import type { DurableStore } from "../durable-store.ts";
import { keyChoiceOf } from "../encryption.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import type { Track } from "../observing/operations/tracked.ts";
import { noteProcesses, withNotes } from "../processes/process-notes.ts";
import { nearestImage } from "./nearest-image.ts";
import { pruneCheckpoints } from "./retention.ts";
import { withWorkFolder } from "./work-folder.ts";

export function checkDurable(sandbox: LiveSandbox): void {
  if (sandbox.durable) return;
  throw new SandboxerError("checkpoint_disabled", "Checkpointing is not enabled for this sandbox.", {
    hint: "Create the sandbox with enable_checkpoint: true.",
  });
}

export interface SaveOptions extends Omit<SnapshotOptions, "mode"> {
  /** The captured state does not change any more, whatever the sandbox does. */
  readonly onCaptured?: () => void;
}

/** Saves a sandbox as an image in the store that no head names yet. */
export async function saveState(
  context: SavingContext,
  sandbox: LiveSandbox,
  track: Track,
  options: SaveOptions,
): Promise<CheckpointReference> {
  return await withCapture(context, sandbox, track, options, (captured) => storeCapture(context, captured, track));
}

/** A captured state of a sandbox. Its files exist until the work with it ends. */
export interface Captured {
  readonly sandbox: LiveSandbox;
  readonly state: SnapshotPayload;
  readonly wallMs: number;
}

/** Captures a sandbox and runs work with the captured state. */
export async function withCapture<Result>(
  context: SavingContext,
  sandbox: LiveSandbox,
  track: Track,
  { onCaptured, ...options }: SaveOptions,
  work: (captured: Captured) => Promise<Result>,
): Promise<Result> {
  const { clock, workDirectory } = context.options;
  // The state is that of this moment; from it the next owner knows how long the sandbox did not run.
  const wallMs = clock.wallMs();
  return await withWorkFolder(workDirectory, async (folder) => {
    const notes = await noteProcesses(sandbox);
    const captured = await sandbox.handle.snapshot(folder, { ...options, mode: "full" });
    const state = await withNotes(captured, notes, folder);
    track.lap("save");
    onCaptured?.();
    return await work({ sandbox, state, wallMs });
  });
}

/** Writes a captured state to the store. No head names it yet. */
export async function storeCapture(
  context: SavingContext,
  { sandbox, state, wallMs }: Captured,
  track: Track,
): Promise<CheckpointReference> {
  const relatives = { parent: sandbox.parentCheckpoint, base: await nearestImage(context, sandbox) };
  const options = { ...track.options, wallMs, ...relatives, ...keyChoiceOf(sandbox) };
  const checkpoint = await context.durable.checkpoints.save(sandbox.id, state, options);
  track.lap("pack");
  track.sizeBytes = checkpoint.size_bytes;
  return checkpoint;
}

/** Runs after the head moved to a checkpoint and before it is reported: updates `latest` and applies retention. */
export async function followHead(
  context: SavingContext,
  sandbox: Pick<LiveSandbox, "id" | "facts">,
  name: string,
): Promise<void> {
  const { id: sandboxId } = sandbox;
  await bringLatestToHead(context.durable, sandboxId, name).catch((error: unknown) => {
    context.options.observer.problem("latest could not be written; the next owner repairs it", { sandboxId, error });
  });
  context.inBackground("removal of old checkpoints", pruneCheckpoints(context, sandbox, name));
}

/**
 * While this server surely owns the sandbox, nobody else has published anything. Otherwise another server may have:
 * then `latest` must not go back, and the head says what it must be.
 */
export async function bringLatestToHead(durable: DurableStore, sandboxId: string, name: string): Promise<void> {
  const { checkpoints, ownership } = durable;
  await checkpoints.writeLatest(sandboxId, name);
  const held = ownership.instances.frozen ? undefined : ownership.held(sandboxId);
  const present = (held ?? (await ownership.read(sandboxId)))?.checkpoint?.name ?? name;
  if (present !== name) await bringLatestToHead(durable, sandboxId, present);
}
