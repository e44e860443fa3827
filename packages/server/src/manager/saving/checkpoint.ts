import { asSandboxerError } from "@sandboxer/protocol";
import { answerWithin } from "../../support/answer-within.ts";
import type { SavingContext } from "../room-contexts.ts";
import { discardLostSandbox } from "../lifecycle/end-of-sandbox.ts";
import { inTurnUntil } from "./in-turn-until.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { checkDurable, followHead, saveState } from "./save.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";
import type { CaptureMark } from "./unsaved-changes.ts";

export interface CheckpointOptions extends VerbOptions {
  /** For the log and the event. */
  readonly reason: string;
  /** Called right before the capture; throws to cancel it. */
  readonly lastCheck?: () => void;
}

/**
 * Saves a sandbox that keeps running, and publishes the checkpoint as the state that the next owner resumes from if
 * this server dies. The sandbox is stopped only during the capture; nothing is reported before the publication.
 */
export async function checkpointSandbox(
  context: SavingContext,
  sandbox: LiveSandbox,
  options: CheckpointOptions,
): Promise<void> {
  checkDurable(sandbox);
  const { id: sandboxId, facts, liveSaves } = sandbox;
  const { reason } = options;
  const work = { operation: "live_checkpoint", sandboxId, backend: facts.backend, reason } as const;
  await liveSaves.run(async () => {
    const mark = await markBeforeCapture(context, sandbox);
    await inTurnUntil(context, sandbox, async (onCaptured) => {
      sandbox.checkRunning();
      options.lastCheck?.();
      await tracked(context, work, options, async (track) => {
        const writing = liveSaves.begin();
        try {
          await save(context, sandbox, { mark, reason, track, signal: writing.signal, onCaptured });
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
  context: SavingContext,
  sandbox: LiveSandbox,
  { mark, reason, track, signal: calledOff, onCaptured }: Save,
): Promise<void> {
  let paused_ms: number | null = null;
  const onStill = (ms: number): void => {
    paused_ms = Math.round(((paused_ms ?? 0) + ms) * 10) / 10;
    track.paused(ms);
  };
  const asked = track.options.signal;
  const signal = asked === undefined ? calledOff : AbortSignal.any([asked, calledOff]);
  const options = { ...track.options, signal, leaveRunning: true, onStill, onCaptured };
  const checkpoint = await saveState(context, sandbox, track, options);
  // In one step with the request to publish: a release of the sandbox has either cancelled this before, or comes after
  // it.
  signal.throwIfAborted();
  sandbox.checkRunning();
  await context.durable.ownership.publish(sandbox, checkpoint);
  sandbox.parentCheckpoint = checkpoint.name;
  sandbox.newestImages = [];
  sandbox.unsaved.published(mark, context.nowMs);
  await followHead(context, sandbox, checkpoint.name);
  track.lap("publish");
  const { name, size_bytes, parent } = checkpoint;
  const data = { name, size_bytes, parent, reason, left_running: true, paused_ms };
  context.events.append({ type: "checkpoint.created", sandboxId: sandbox.id, data });
}

/** A sandbox that does not report its processes within this time counts as one with running processes. */
const ANSWER_MS = 5_000;

/** Facts about a sandbox that is about to be captured. */
async function markBeforeCapture(context: SavingContext, sandbox: LiveSandbox): Promise<CaptureMark> {
  const mark = sandbox.unsaved.mark(context.nowMs);
  return { ...mark, quiet: await isQuiet(context, sandbox) };
}

/**
 * Whether no process runs inside: then the sandbox stays unchanged until it is used. Only asked if there is a max_loss.
 */
async function isQuiet({ options }: SavingContext, sandbox: LiveSandbox): Promise<boolean> {
  if (sandbox.facts.about.max_loss === null) return false;
  if (sandbox.held || sandbox.processes.running) return false;
  try {
    const table = await answerWithin(options.clock, ANSWER_MS, sandbox.handle.processTable());
    return table?.length === 0;
  } catch {
    return false;
  }
}
