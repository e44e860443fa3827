import { SandboxerError, type CheckpointReference } from "@sandboxer/protocol";
import type { SnapshotOptions, SnapshotPayload } from "../../backends/backend.ts";
import type { SavingContext } from "../room-contexts.ts";
import type { DurableStore } from "../durable-store.ts";
import { keyChoiceOf } from "../encryption.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import type { Track } from "../observing/operations/tracked.ts";
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
  /** What is written from now on is not changed by what the sandbox does. */
  readonly onCaptured?: () => void;
}

/** Saves everything of a sandbox as an image in the store, which nothing names yet. */
export async function saveState(
  context: SavingContext,
  sandbox: LiveSandbox,
  track: Track,
  options: SaveOptions,
): Promise<CheckpointReference> {
  return await withCapture(context, sandbox, track, options, (captured) => storeCapture(context, captured, track));
}

/** A state of a sandbox. Its files are there until the work with it ends. */
export interface Captured {
  readonly sandbox: LiveSandbox;
  readonly state: SnapshotPayload;
  readonly wallMs: number;
}

/** Captures everything of a sandbox and does something with it. */
export async function withCapture<Result>(
  context: SavingContext,
  sandbox: LiveSandbox,
  track: Track,
  { onCaptured, ...options }: SaveOptions,
  work: (captured: Captured) => Promise<Result>,
): Promise<Result> {
  const { clock, workDirectory } = context.options;
  // The state is that of this moment; the next owner can tell from it for how long nobody ran the sandbox.
  const wallMs = clock.wallMs();
  return await withWorkFolder(workDirectory, async (folder) => {
    const state = await sandbox.handle.snapshot(folder, { ...options, mode: "full" });
    track.lap("save");
    onCaptured?.();
    return await work({ sandbox, state, wallMs });
  });
}

/** Brings a captured state to the store. Nothing names it yet. */
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

/** What comes after the head has moved to a checkpoint and before anyone is told: views, and what it has made old. */
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
 * While this server is sure to own the sandbox nobody else has published anything. Otherwise somebody may have: then
 * `latest` must not go back, and the head says to what.
 */
export async function bringLatestToHead(durable: DurableStore, sandboxId: string, name: string): Promise<void> {
  const { checkpoints, ownership } = durable;
  await checkpoints.writeLatest(sandboxId, name);
  const held = ownership.instances.frozen ? undefined : ownership.held(sandboxId);
  const present = (held ?? (await ownership.read(sandboxId)))?.checkpoint?.name ?? name;
  if (present !== name) await bringLatestToHead(durable, sandboxId, present);
}
