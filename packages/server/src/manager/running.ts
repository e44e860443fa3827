import { SandboxerError, type Head } from "@sandboxer/protocol";
import type { RunningContext } from "./room-contexts.ts";
import { CALL_PATIENCE_MS, isFrozen, untilThawed, type Patience } from "./ownership/freeze.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { notFound, wasDestroyed } from "./not-found.ts";

/**
 * The sandbox to work with, which runs here; otherwise throws the reason: another server owns it, it is paused, deleted
 * or frozen. Refuses an epoch that is not the current one.
 */
export async function runningSandbox(
  context: RunningContext,
  sandboxId: string,
  epoch?: number,
  patience: Patience = {},
): Promise<LiveSandbox> {
  const sandbox = context.sandboxes.get(sandboxId);
  if (sandbox === undefined) throw await absence(context, sandboxId, epoch);
  checkEpoch(context.durable.ownership.held(sandboxId), epoch);
  sandbox.checkRunning();
  if (!isFrozen(context, sandbox)) return sandbox;
  await untilThawed(context, sandbox, { limitMs: CALL_PATIENCE_MS, ...patience });
  // The sandbox may have been lost while it was paused.
  return runningSandbox(context, sandboxId, epoch, patience);
}

export function checkEpoch(head: Head | undefined, epoch: number | undefined): void {
  if (epoch === undefined || head?.epoch === epoch) return;
  const present = head?.epoch ?? null;
  const what = present === null ? "The sandbox has no epoch: it is not stored." : `The sandbox is at epoch ${present}.`;
  throw new SandboxerError("stale_epoch", what, { details: { epoch: present, owner: head?.owner ?? null } });
}

/** Why a sandbox that is not here cannot be used here. */
async function absence(context: RunningContext, sandboxId: string, epoch: number | undefined): Promise<Error> {
  const head = await context.storedHead(sandboxId);
  if (head === undefined) return notFound(sandboxId);
  if (head.state === "deleted") return wasDestroyed(sandboxId);
  checkEpoch(head, epoch);
  const details = { state: "stored", epoch: head.epoch, owner: head.owner };
  if (head.owner === null && context.recentHandoffs.isOnTheWay(sandboxId)) return onTheWay(details);
  if (head.owner === null) return asleep(sandboxId, details);
  const url = (await context.durable.ownership.instances.urlOf(head.owner)) ?? null;
  return new SandboxerError("lease_held", `The server ${url ?? head.owner} runs the sandbox, at epoch ${head.epoch}.`, {
    hint: "Send the request there, or move the sandbox to this server with POST …/resume.",
    details: { ...details, state: "running", url },
  });
}

function onTheWay(details: Readonly<Record<string, unknown>>): SandboxerError {
  return new SandboxerError("wrong_state", "The sandbox is being handed off to another server.", {
    details: { ...details, state: "restoring" },
  });
}

function asleep(sandboxId: string, details: Readonly<Record<string, unknown>>): SandboxerError {
  return new SandboxerError("wrong_state", "The sandbox is paused.", {
    hint: `Resume it with POST /v1/sandboxes/${sandboxId}/resume, or \`sandboxer attach ${sandboxId}\`.`,
    details: { state: "stored", ...details },
  });
}
