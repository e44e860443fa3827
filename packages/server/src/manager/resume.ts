import { isSandboxId, SandboxerError } from "@sandboxer/protocol";
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
  await refuseExpired(context, sandboxId);
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

/** It would be put down again at once. */
async function refuseExpired({ options }: ManagerContext, sandboxId: string): Promise<void> {
  const head = isSandboxId(sandboxId) ? await options.durable?.ownership.read(sandboxId) : undefined;
  const expiresAt = head?.about?.expires_at ?? null;
  if (head?.state === "deleted" || expiresAt === null || Date.parse(expiresAt) > options.clock.wallMs()) return;
  throw new SandboxerError("wrong_state", `The sandbox's time was over at ${expiresAt}.`, {
    hint: `Give it more with \`sandboxer extend-ttl ${sandboxId} --duration 1h\`, then wake it.`,
    details: { state: "stored", expires_at: expiresAt },
  });
}
