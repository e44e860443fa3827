import { asSandboxerError, type CheckpointReference } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { keyChoiceOf } from "../encryption.ts";
import { discardLostSandbox } from "../lifecycle/end-of-sandbox.ts";
import { inTurnUntil } from "./in-turn-until.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { nearestImage } from "./nearest-image.ts";
import { checkDurable, followHead } from "./save.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";
import { withWorkFolder } from "./work-folder.ts";
import { markBeforeCapture } from "./quiet.ts";
import type { CaptureMark } from "./unsaved-changes.ts";

export interface LiveCheckpointOptions extends VerbOptions {
  /** For the log and the event. */
  readonly reason: string;
  /** The last look before the capture; throws to call it off. */
  readonly lastLook?: () => void;
}

/**
 * Saves everything of a sandbox, which goes on here, and makes that the state that the next owner begins with should this
 * server die. It stands still for the capture only; nobody is told of it before it is published.
 */
export async function checkpointLive(
  context: ManagerContext,
  sandbox: LiveSandbox,
  options: LiveCheckpointOptions,
): Promise<CheckpointReference> {
  checkDurable(sandbox);
  const { id: sandboxId, facts, liveSaves } = sandbox;
  const { reason } = options;
  const work = { operation: "live_checkpoint", sandboxId, backend: facts.backend, reason } as const;
  return await liveSaves.run(async () => {
    const mark = await markBeforeCapture(context, sandbox);
    return await inTurnUntil(context, sandbox, async (onCaptured) => {
      sandbox.checkRunning();
      options.lastLook?.();
      return await tracked(context, work, options, async (track) => {
        const writing = liveSaves.begin();
        try {
          return await save(context, sandbox, { mark, reason, track, signal: writing.signal, onCaptured });
        } catch (thrown) {
          const error = asSandboxerError(writing.signal.aborted ? writing.signal.reason : thrown);
          if (error.code === "lease_lost") await discardLostSandbox(context, sandbox, error);
          throw error;
        } finally {
          writing.end();
        }
      });
    });
  });
}

interface Save {
  readonly mark: CaptureMark;
  readonly reason: string;
  readonly track: Track;
  readonly signal: AbortSignal;
  readonly onCaptured: () => void;
}

async function save(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { mark, reason, track, signal, onCaptured }: Save,
): Promise<CheckpointReference> {
  const { checkpoints, ownership } = context.durable;
  const { handle } = sandbox;
  let paused_ms: number | null = null;
  const onStill = (ms: number): void => {
    paused_ms = Math.round(((paused_ms ?? 0) + ms) * 10) / 10;
    track.paused(ms);
  };
  const asked = track.options.signal;
  const options = { ...track.options, signal: asked === undefined ? signal : AbortSignal.any([asked, signal]) };
  const wallMs = context.options.clock.wallMs();
  const checkpoint = await withWorkFolder(context.options.workDirectory, async (folder) => {
    const state = await handle.snapshot(folder, { ...options, mode: "full", leaveRunning: true, onStill });
    track.lap("save");
    onCaptured();
    const relatives = { parent: sandbox.parentCheckpoint, base: await nearestImage(context, sandbox) };
    return await checkpoints.save(sandbox.id, state, { ...options, wallMs, ...relatives, ...keyChoiceOf(sandbox) });
  });
  track.lap("pack");
  track.sizeBytes = checkpoint.size_bytes;
  // In one step with the order to publish: whoever gives the sandbox up has called this off, or comes after it.
  options.signal.throwIfAborted();
  sandbox.checkRunning();
  await ownership.publish(sandbox.id, checkpoint);
  sandbox.parentCheckpoint = checkpoint.name;
  sandbox.newestImages = [];
  sandbox.unsaved.published(mark, context.nowMs);
  await followHead(context, sandbox, checkpoint.name);
  track.lap("publish");
  const { name, size_bytes, parent } = checkpoint;
  const data = { name, size_bytes, parent, reason, left_running: true, paused_ms };
  context.events.append({ type: "checkpoint.created", sandboxId: sandbox.id, data });
  return checkpoint;
}
