import { isSandboxId, SandboxerError, type Head } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import type { DurableStore } from "../durable-store.ts";
import { takeShownKey } from "../encryption.ts";
import { hasExpired } from "../lifecycle/time-to-live.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { notFound } from "../not-found.ts";
import { type RestoreRequest, restoreSandbox } from "../lifecycle/restore.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";
import { endReplaced } from "../snapshots/end-replaced.ts";
import { checkAccess, type Credentials } from "../token.ts";

export interface AttachRequest extends RestoreRequest {
  readonly credentials: Credentials;
  /** The sandbox is not on this server, so the store is asked. */
  readonly onRestoring: () => void;
}

/** Attaches a client to a sandbox that runs here, or restores it from the store. */
export async function attachSandbox(
  context: ManagerContext,
  request: AttachRequest,
  options: VerbOptions = {},
): Promise<LiveSandbox> {
  const { sandboxId, credentials, client } = request;
  const live = await settledSandbox(context, sandboxId);
  if (live !== undefined) {
    checkAccess(credentials, live.facts.tokenHash);
    if (live.state === "destroying") {
      // Ending it failed half-way: it cannot be used any more.
      if (context.durable.saves) request.onRestoring();
      throw notFound(sandboxId);
    }
    if (live.state === "restoring" && context.accepted.restoring.has(sandboxId)) {
      return attachOnceRestored(context, request, options);
    }
    if (live.client !== undefined || live.state === "restoring" || live.state === "creating") {
      throw inUse();
    }
    live.checkRunning();
    if (request.checkpoint !== undefined) {
      throw new SandboxerError(
        "wrong_state",
        "The sandbox is running. You can resume from an older checkpoint only after it is paused.",
      );
    }
    takeShownKey(context, live, options.encryption);
    if (client !== undefined) live.attach(client, context.nowMs);
    return live;
  }
  const { durable } = context;
  const head = await context.storedHead(sandboxId);
  // Without a configured store there is nothing else to restore.
  if ((head === undefined || head.state === "deleted") && !durable.saves) throw notFound(sandboxId);
  if (!isSandboxId(sandboxId)) {
    request.onRestoring();
    throw notFound(sandboxId);
  }
  if (head !== undefined) checkAccess(credentials, head.token_hash);
  else if (!credentials.trusted && (await isImport(durable, sandboxId))) checkAccess(credentials, undefined);
  // Several calls may get here; the first one takes the sandbox, without an await in between.
  if (context.sandboxes.has(sandboxId)) return attachSandbox(context, request, options);
  if (context.restoring.has(sandboxId)) {
    if (context.accepted.restoring.has(sandboxId)) return attachOnceRestored(context, request, options);
    throw inUse();
  }
  context.restoring.add(sandboxId);
  try {
    request.onRestoring();
    return await takeOver(context, request, head, options);
  } finally {
    context.restoring.delete(sandboxId);
  }
}

/** This server resumes the sandbox by itself, and no client waits for it yet. */
async function attachOnceRestored(
  context: ManagerContext,
  request: AttachRequest,
  options: VerbOptions,
): Promise<LiveSandbox> {
  await context.taking.run(request.sandboxId, async () => {});
  return attachSandbox(context, request, options);
}

function takeOver(
  context: ManagerContext,
  request: AttachRequest,
  seen: Head | undefined,
  options: VerbOptions,
): Promise<LiveSandbox> {
  const { sandboxId } = request;
  const others = context.taking.isBusy(sandboxId);
  return context.taking.run(sandboxId, async () => {
    // The previous owner may have changed or deleted it.
    const head = others ? await context.durable.ownership.read(sandboxId) : seen;
    if (head?.state === "parked") refuseExpired(context, sandboxId, head.about?.expires_at);
    const sandbox = await restoreSandbox(context, { ...request, head }, options);
    context.inBackground("end of a promotion that a server left undone", endReplaced(context, sandboxId));
    return sandbox;
  });
}

/** A folder without a head has no token yet: only a server key opens it. */
async function isImport({ checkpoints }: DurableStore, sandboxId: string): Promise<boolean> {
  return (await checkpoints.latestName(sandboxId)) !== undefined;
}

/** An expired sandbox would be paused again at once. */
function refuseExpired(context: ManagerContext, sandboxId: string, expires_at: string | null | undefined): void {
  if (!hasExpired(context, expires_at)) return;
  throw new SandboxerError("wrong_state", `The sandbox expired at ${expires_at}.`, {
    hint: `Extend it with \`sandboxer extend-ttl ${sandboxId} --duration 1h\`, then resume it.`,
    details: { state: "stored", expires_at },
  });
}

function inUse(): SandboxerError {
  return new SandboxerError("sandbox_in_use", "Another client is attached to the sandbox.");
}

/** The live sandbox, after any save or end in progress that no client waits for. */
async function settledSandbox(context: ManagerContext, sandboxId: string): Promise<LiveSandbox | undefined> {
  const live = context.sandboxes.get(sandboxId);
  if (live === undefined) return live;
  // It may have ended by the time the store answered.
  if (live.client !== undefined && !(await isGivenUp(context, live))) return context.sandboxes.get(sandboxId);
  if (live.state === "saving" || live.state === "destroying") await live.queue.run(async () => {});
  return context.sandboxes.get(sandboxId);
}

/**
 * A released sandbox is no longer live here, even if its client has not heard of it yet. The store knows first: another
 * server sees the released head before its write has returned here.
 */
async function isGivenUp({ options }: ManagerContext, { id, state }: LiveSandbox): Promise<boolean> {
  const { ownership } = options.durable;
  if (state !== "saving") return false;
  const held = ownership.held(id);
  if (held === undefined) return true;
  // A store that does not answer releases nothing.
  const head = await ownership.read(id).catch(() => held);
  return head?.owner !== ownership.instanceId || head.epoch !== held.epoch;
}
