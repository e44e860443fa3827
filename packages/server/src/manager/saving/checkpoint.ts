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
  /** Called right before the capture; throws to call it off. */
  readonly lastCheck?: () => void;
}

/**
 * Saves everything of a sandbox, which keeps running here, and makes that the state that the next owner begins with should
 * this server die. It stands still for the capture only; nobody is told of it before it is published.
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
  // In one step with the order to publish: whoever gives the sandbox up has called this off, or comes after it.
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

/** A sandbox that does not say what lives inside in this time counts as one in which something does. */
const ANSWER_MS = 5_000;

/** What is known of a sandbox that is about to be captured. */
async function markBeforeCapture(context: SavingContext, sandbox: LiveSandbox): Promise<CaptureMark> {
  const mark = sandbox.unsaved.mark(context.nowMs);
  return { ...mark, quiet: await isQuiet(context, sandbox) };
}

/** Whether nothing lives inside: then it stays as it is until somebody uses it. Only worth a question with a promise. */
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
