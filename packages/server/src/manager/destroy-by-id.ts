import { isSandboxId, SandboxerError } from "@sandboxer/protocol";
import type { OutlivingRecord } from "../records/sandbox-records.ts";
import type { ManagerContext } from "./context.ts";
import { destroySandbox } from "./destroy.ts";
import { reviveSandbox } from "./outliving.ts";
import { notFound } from "./not-found.ts";
import { checkEpoch } from "./running.ts";
import { tracked, type VerbOptions } from "./tracked.ts";

/**
 * Destroys a sandbox wherever it is, with everything that is stored of it. One that lives at another server is asked for
 * first, and stays if that server refuses.
 */
export async function destroyById(
  context: ManagerContext,
  sandboxId: string,
  epoch: number | undefined,
  options: VerbOptions = {},
): Promise<void> {
  const { durable, handoffTimeoutMs } = context.options;
  const live = context.sandboxes.get(sandboxId);
  if (live !== undefined) {
    checkEpoch(durable?.ownership.held(sandboxId), epoch);
    if (live.state === "creating" || live.state === "restoring") {
      throw new SandboxerError("wrong_state", `The sandbox is ${live.state}.`, { details: { state: live.state } });
    }
    const { client } = live;
    client?.notify({ type: "deleting", cause: "request" });
    await destroySandbox(context, live, options);
    client?.notify({ type: "deleted", cause: "request" });
    return;
  }
  const record = await context.options.records.get(sandboxId);
  if (record !== undefined) return destroyOutliving(context, sandboxId, record, options);
  const head = durable === undefined || !isSandboxId(sandboxId) ? undefined : await durable.ownership.read(sandboxId);
  if (durable === undefined || head === undefined) throw notFound(sandboxId);
  if (head.state === "deleted") {
    throw new SandboxerError("sandbox_destroyed", `The sandbox ${sandboxId} was destroyed.`);
  }
  checkEpoch(head, epoch);
  const work = { operation: "destroy", sandboxId, backend: head.backend } as const;
  await tracked(context, work, options, async () => {
    await durable.ownership.destroy(sandboxId, { handoffTimeoutMs });
    context.behind("removal of a destroyed sandbox's data", durable.checkpoints.removeAll(sandboxId));
  });
}

/** Its provider has to be told, so it is taken up first. One that the provider does not have any more leaves its record. */
async function destroyOutliving(
  context: ManagerContext,
  sandboxId: string,
  record: OutlivingRecord,
  options: VerbOptions,
): Promise<void> {
  try {
    await destroySandbox(context, await reviveSandbox(context, sandboxId, record, {}), options);
  } catch (error) {
    if (!(error instanceof SandboxerError) || error.details["state"] !== "unreachable") throw error;
    await context.options.records.remove(sandboxId);
  }
}
