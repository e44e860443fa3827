import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxHandle } from "../../backends/backend.ts";
import type { OutlivingRecord } from "../../records/sandbox-records.ts";
import { acquireRequest } from "../lifecycle/acquire-request.ts";
import type { ManagerContext } from "../context.ts";
import { type RequestKeys, takeShownKey } from "../encryption.ts";
import { watchForEnd } from "../lifecycle/end-of-sandbox.ts";
import { LiveSandbox, type SandboxFacts } from "../live-sandbox.ts";
import { notFound } from "../not-found.ts";
import { noteOutliving } from "./outliving-records.ts";
import type { SandboxPlan } from "../lifecycle/plan.ts";
import { storedFacts } from "../stored-facts.ts";
import { tracked, type VerbOptions } from "../observing/operations/tracked.ts";

/**
 * Takes up a sandbox that an earlier server has left with its provider: it is found again by its id, and started. Before
 * that its record says so, in one swap, because of several servers that want it only one may have it. Afterwards, if it
 * could not be had, the record is as it was.
 */
export async function reviveSandbox(
  context: ManagerContext,
  sandboxId: string,
  record: OutlivingRecord,
  options: VerbOptions,
): Promise<LiveSandbox> {
  await refuseHeld(context, record);
  const { records, holder } = context.options;
  const claimed: OutlivingRecord = { ...record, stopped_at: null, holder };
  if (!(await records.swap(sandboxId, record, claimed))) {
    const present = await records.get(sandboxId);
    if (present === undefined) throw notFound(sandboxId);
    return reviveSandbox(context, sandboxId, present, options);
  }
  try {
    return await revive(context, sandboxId, record, options);
  } catch (error) {
    await context.reported("record of a sandbox that was not taken up", records.swap(sandboxId, claimed, record));
    throw error;
  }
}

async function revive(
  context: ManagerContext,
  sandboxId: string,
  record: OutlivingRecord,
  options: VerbOptions,
): Promise<LiveSandbox> {
  const facts = storedFacts(sandboxId, record);
  const sandbox = new LiveSandbox(facts, "restoring", context.nowMs, context.onMove(sandboxId));
  takeShownKey(sandbox, options.encryption);
  context.admit(sandbox);
  try {
    return await tracked(
      context,
      { operation: "restore", sandboxId, backend: facts.backend },
      options,
      async (track) => {
        // By its id, not by its key: the machine that has made it may have been another installation's.
        const { identity: _, ...request } = await acquireRequest(context, facts, track.options);
        const handle = await context.backend(facts.backend).tryResume(request, track.options);
        if (handle === undefined) {
          throw new SandboxerError(
            "sandbox_failed",
            `The backend ${facts.backend} does not have the sandbox any more.`,
            {
              hint: "Restore a snapshot of it, or destroy its record and create a new one.",
              details: { state: "unreachable" },
            },
          );
        }
        track.lap("backend");
        // Before it runs: one whose time is over would be put down again while its record is written.
        await context.reported("record of a sandbox", noteOutliving(context, facts, false));
        sandbox.started(handle);
        watchForEnd(context, sandbox);
        return sandbox;
      },
    );
  } catch (error) {
    if (sandbox.state !== "gone") sandbox.moveTo("gone");
    throw error;
  }
}

/** Two servers that run one sandbox would not know of each other. One that died has left it. */
async function refuseHeld(context: ManagerContext, record: OutlivingRecord): Promise<void> {
  const held = await heldElsewhere(context, record);
  if (held !== undefined) throw held;
}

/** Why a sandbox that another living server runs cannot be had here; undefined when none does. */
export async function heldElsewhere(
  { options }: ManagerContext,
  { stopped_at, holder }: OutlivingRecord,
): Promise<SandboxerError | undefined> {
  if (stopped_at !== null || holder === null) return undefined;
  const { host, pid, url } = options.holder;
  if (holder.host === host && holder.pid === pid && holder.url === url) return undefined;
  if (!(await options.isHolderAlive(holder))) return undefined;
  const where = holder.url ?? `process ${holder.pid} on ${holder.host}`;
  return new SandboxerError("lease_held", `The server ${where} has the sandbox.`, {
    hint: "Send the request there, or stop the sandbox there first.",
    details: { state: "running", url: holder.url },
  });
}

/** Takes up a sandbox that its provider has found by its key, and of which this server knew nothing. */
export async function adoptOutliving(
  context: ManagerContext,
  plan: SandboxPlan,
  handle: SandboxHandle,
  keys: RequestKeys | undefined,
): Promise<LiveSandbox> {
  const { backend, spec, labels, flags, idleTimeoutMs, about } = plan;
  const facts: SandboxFacts = {
    sandboxId: handle.sandboxId,
    backend,
    spec,
    labels,
    flags,
    idleTimeoutMs,
    about,
    lineage: { sandbox_id: null, checkpoint: null, filesystem_snapshot: null, snapshot: null },
    createdAt: new Date(context.options.clock.wallMs()).toISOString(),
    tokenHash: undefined,
  };
  const sandbox = new LiveSandbox(facts, "restoring", context.nowMs, context.onMove(facts.sandboxId));
  takeShownKey(sandbox, keys);
  context.admit(sandbox);
  sandbox.started(handle);
  watchForEnd(context, sandbox);
  await noteOutliving(context, facts, false);
  return sandbox;
}
