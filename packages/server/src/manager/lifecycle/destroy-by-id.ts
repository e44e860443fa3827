import { type Head, type RemovedData, SandboxerError, type SandboxState } from "@sandboxer/protocol";
import { leavesNothing } from "../../lease/stored-head.ts";
import type { ManagerContext } from "../context.ts";
import { destroySandbox, forgetData, NOTHING_STORED } from "./destroy.ts";
import { restoreSandbox } from "./restore.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { publishBeforeClaim } from "../ownership/publish-unpublished.ts";
import { notFound, wasDestroyed } from "../not-found.ts";
import { checkEpoch } from "../running.ts";
import { tracked, type VerbOptions } from "../observing/operations/tracked.ts";

/**
 * Deletes a sandbox wherever it is, with its checkpoints. If it runs on another server, that server is asked for it
 * first; if that server refuses, the sandbox stays.
 */
export async function destroyById(
  context: ManagerContext,
  sandboxId: string,
  epoch: number | undefined,
  options: VerbOptions = {},
): Promise<RemovedData> {
  const live = context.sandboxes.get(sandboxId);
  if (live !== undefined && live.state !== "restoring") {
    const removed = await destroyLive(context, live, epoch, options);
    if (removed !== undefined) return removed;
  }
  return await context.taking.run(sandboxId, async () => {
    // A sandbox that another server claimed meanwhile is deleted there.
    const taken = context.sandboxes.get(sandboxId);
    const removed = taken === undefined ? undefined : await destroyLive(context, taken, epoch, options);
    return removed ?? (await destroyStored(context, sandboxId, epoch, options));
  });
}

/** Undefined if there was nothing to delete: a save in progress may have paused the sandbox. */
async function destroyLive(
  context: ManagerContext,
  live: LiveSandbox,
  epoch: number | undefined,
  options: VerbOptions,
): Promise<RemovedData | undefined> {
  checkEpoch(context.durable.ownership.held(live.id), epoch);
  if (live.state === "creating") {
    await live.abortCreation(
      new SandboxerError("sandbox_destroyed", "The sandbox was deleted while it was being created."),
    );
    if ((live.state as SandboxState) === "gone") return NOTHING_STORED;
  }
  if (live.state === "saving") await live.queue.run(async () => {});
  if (live.state === "gone") return undefined;
  const { client } = live;
  client?.notify({ type: "deleting", cause: "request" });
  const removed = await destroySandbox(context, live, options);
  client?.notify({ type: "deleted", cause: "request" });
  return removed;
}

async function destroyStored(
  context: ManagerContext,
  sandboxId: string,
  epoch: number | undefined,
  options: VerbOptions,
): Promise<RemovedData> {
  const head = await context.storedHead(sandboxId);
  if (head === undefined) throw notFound(sandboxId);
  if (head.state === "deleted") throw wasDestroyed(sandboxId);
  checkEpoch(head, epoch);
  const isKept = head.residence === "provider";
  const removed = isKept ? await destroyAtProvider(context, sandboxId, head, options) : undefined;
  if (removed !== undefined) return removed;
  const { handoffTimeoutMs } = context.options;
  const work = { operation: "destroy", sandboxId, backend: head.backend } as const;
  return await tracked(context, work, options, async () => {
    await context.durable.ownership.destroy(sandboxId, { handoffTimeoutMs, owner: head.owner });
    context.inBackground("removal of local data of a deleted sandbox", publishBeforeClaim(context, sandboxId));
    return await forgetData(context, { id: sandboxId, lineage: head.lineage }, !leavesNothing(head));
  });
}

/** The provider must be told, so the sandbox is claimed first. Undefined: the provider no longer has it. */
async function destroyAtProvider(
  context: ManagerContext,
  sandboxId: string,
  head: Head,
  options: VerbOptions,
): Promise<RemovedData | undefined> {
  try {
    const sandbox = await restoreSandbox(context, { ...TAKEN_UP, sandboxId, head }, {});
    return await destroySandbox(context, sandbox, options);
  } catch (error) {
    if (!(error instanceof SandboxerError) || error.details["state"] !== "unreachable") throw error;
    return undefined;
  }
}

const TAKEN_UP = {
  credentials: { token: undefined, trusted: true },
  checkpoint: undefined,
  onRestoring: () => {},
  onOwnership: () => {},
} as const;
