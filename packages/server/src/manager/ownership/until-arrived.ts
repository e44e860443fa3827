import type { ManagerContext } from "../context.ts";

const LOOK_MS = 50;

/**
 * Waits while a sandbox is on its way to this server or away from it, at most for the time of a handoff. A call that
 * arrives meanwhile then finds the sandbox here, or its new owner. Costs nothing for a sandbox that is not moving.
 */
export async function untilArrived(context: ManagerContext, sandboxId: string, signal: AbortSignal): Promise<void> {
  const { clock, handoffTimeoutMs } = context.options;
  const endMs = context.nowMs + handoffTimeoutMs;
  while (!signal.aborted && context.nowMs < endMs && (await isMoving(context, sandboxId))) {
    await clock.sleep(LOOK_MS, signal).catch(() => {});
  }
}

async function isMoving(context: ManagerContext, sandboxId: string): Promise<boolean> {
  const sandbox = context.sandboxes.get(sandboxId);
  if (sandbox?.state === "restoring") return true;
  if (sandbox?.state === "saving") {
    const held = context.durable.ownership.held(sandboxId);
    // Released already, or about to be for another server.
    return held === undefined || (held.want !== null && held.want.refused === undefined);
  }
  if (sandbox !== undefined) return false;
  if (!context.recentHandoffs.isOnTheWay(sandboxId)) return false;
  const head = await context.storedHead(sandboxId);
  return head !== undefined && head.state !== "deleted" && head.owner === null;
}
