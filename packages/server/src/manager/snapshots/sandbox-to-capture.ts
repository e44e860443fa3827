import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { resumeSandbox } from "../lifecycle/resume.ts";
import { checkEpoch, runningSandbox } from "../running.ts";
import { checkCapture, type CaptureRequest } from "./capture.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";

/**
 * The sandbox to capture, which runs here. A paused sandbox, or one whose server died, is resumed here first; one that
 * a live server owns, or that is not ready for another reason, is refused.
 */
export async function sandboxToCapture(
  context: ManagerContext,
  sandboxId: string,
  epoch: number | undefined,
  request: CaptureRequest,
  options: VerbOptions = {},
): Promise<LiveSandbox> {
  const backend = await backendOfSleeper(context, sandboxId, epoch);
  if (backend === undefined) return runningSandbox(context, sandboxId, epoch);
  // A sandbox that cannot be captured is not resumed for it.
  checkCapture(context, backend, request);
  const { operation, ...rest } = options;
  operation?.concerns({ sandboxId });
  operation?.onProgress({ phase: "resuming" });
  const sandbox = await resumeSandbox(context, { sandboxId }, rest);
  operation?.lap("resume");
  context.events.append({ type: "sandbox.resumed", sandboxId, data: { for: "snapshot" } });
  return sandbox;
}

/** For a sandbox that can be resumed here, or is being resumed. */
async function backendOfSleeper(
  context: ManagerContext,
  sandboxId: string,
  epoch: number | undefined,
): Promise<string | undefined> {
  const live = context.sandboxes.get(sandboxId);
  if (live !== undefined) return live.state === "restoring" ? live.facts.backend : undefined;
  const head = await context.storedHead(sandboxId);
  if (head === undefined) return undefined;
  const { owner, state, backend } = head;
  if (state === "deleted" || (owner !== null && !(await context.durable.ownership.isDead(owner)))) return undefined;
  checkEpoch(head, epoch);
  return backend;
}
