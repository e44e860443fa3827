import { SandboxerError } from "@sandboxer/protocol";
import { attachSandbox } from "./attach.ts";
import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { checkEpoch } from "./running.ts";
import type { VerbOptions } from "./tracked.ts";

export interface ResumeRequest {
  readonly sandboxId: string;
  /** An older checkpoint to go back to, instead of the newest. */
  readonly checkpoint?: string | undefined;
  readonly epoch?: number | undefined;
}

/** Makes a sandbox run here, without a client: from the store, or from the server that has it. One that runs stays. */
export async function resumeSandbox(
  context: ManagerContext,
  { sandboxId, checkpoint, epoch }: ResumeRequest,
  options: VerbOptions = {},
): Promise<LiveSandbox> {
  const { ownership } = context.options.durable ?? {};
  if (epoch !== undefined) checkEpoch(ownership?.held(sandboxId) ?? (await ownership?.read(sandboxId)), epoch);
  const live = context.sandboxes.get(sandboxId);
  if (live?.state === "running" && checkpoint === undefined) {
    live.touch(context.nowMs);
    return live;
  }
  try {
    return await attachSandbox(
      context,
      {
        sandboxId,
        checkpoint,
        credentials: { token: undefined, trusted: true },
        onRestoring: () => options.operation?.onProgress({ phase: "restoring" }),
        onOwnership: (step) => {
          if (step === "waiting") options.operation?.onProgress({ phase: "waiting for the owner" });
        },
      },
      options,
    );
  } catch (error) {
    // Two that wake it at once are both served by the first.
    const waking = context.sandboxes.get(sandboxId);
    if (error instanceof SandboxerError && error.code === "sandbox_in_use" && waking?.state === "restoring") {
      throw new SandboxerError("wrong_state", "The sandbox is being restored.", { details: { state: "restoring" } });
    }
    throw error;
  }
}
