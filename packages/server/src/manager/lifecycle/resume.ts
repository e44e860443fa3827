import { SandboxerError } from "@sandboxer/protocol";
import { attachSandbox } from "../ownership/attach.ts";
import { CALL_PATIENCE_MS, isFrozen, untilThawed } from "../ownership/freeze.ts";
import type { ManagerContext } from "../context.ts";
import { takeShownKey } from "../encryption.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { checkEpoch } from "../running.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";

export interface ResumeRequest {
  readonly sandboxId: string;
  /** An older checkpoint to resume from, instead of the newest. */
  readonly checkpoint?: string | undefined;
  readonly epoch?: number | undefined;
  /** Not if another live server owns it: then `lease_held`, and that server keeps it. */
  readonly onlyIfFree?: boolean;
}

/**
 * Makes a sandbox run here without a client: from the store, or from the server that runs it. A running sandbox stays
 * as it is.
 */
export async function resumeSandbox(
  context: ManagerContext,
  { sandboxId, checkpoint, epoch, onlyIfFree = false }: ResumeRequest,
  options: VerbOptions = {},
): Promise<LiveSandbox> {
  const { ownership } = context.durable;
  if (epoch !== undefined) checkEpoch(ownership.held(sandboxId) ?? (await ownership.read(sandboxId)), epoch);
  const live = context.sandboxes.get(sandboxId);
  if (live?.state === "running" && checkpoint === undefined) {
    if (isFrozen(context, live)) {
      await untilThawed(context, live, { limitMs: CALL_PATIENCE_MS });
      // The sandbox may have been lost while it was paused.
      return resumeSandbox(context, { sandboxId, checkpoint, epoch, onlyIfFree }, options);
    }
    takeShownKey(context, live, options.encryption);
    live.touch(context.nowMs);
    return live;
  }
  try {
    return await attachSandbox(
      context,
      {
        sandboxId,
        checkpoint,
        onlyIfFree,
        credentials: { token: undefined, trusted: true },
        onRestoring: () => options.operation?.onProgress({ phase: "restoring" }),
        onOwnership: (step) => {
          if (step === "waiting") options.operation?.onProgress({ phase: "waiting for the owner" });
        },
      },
      options,
    );
  } catch (error) {
    if (!(error instanceof SandboxerError) || error.code !== "sandbox_in_use" || checkpoint !== undefined) throw error;
    // Another request is resuming it already: both use the result. A sandbox with an attached client runs too.
    await context.taking.run(sandboxId, async () => {});
    const woken = context.sandboxes.get(sandboxId);
    if (woken?.state !== "running") throw error;
    return woken;
  }
}
