import { parseCopyId } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { encryptionFor, takeShownKey } from "../encryption.ts";
import { LiveSandbox } from "../live-sandbox.ts";
import { type NetworkAccess, openNetwork } from "../network/network-access.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";
import { abandonCopy, residenceOf } from "../ownership/residence.ts";
import { acquireRequest } from "./acquire-request.ts";
import { createHead, factsOf, NO_LINEAGE } from "./create.ts";
import { leaseLost, watchForEnd } from "./end-of-sandbox.ts";
import type { SandboxPlan } from "./plan.ts";

/**
 * Adopts a sandbox that its provider finds by its key but the store does not know: a server with another store created
 * it, or the store was lost. It gets a head here.
 */
export async function adoptByKey(
  context: ManagerContext,
  plan: SandboxPlan,
  options: VerbOptions,
): Promise<LiveSandbox | undefined> {
  if (residenceOf(context, plan) !== "provider") return undefined;
  const encryption = await encryptionFor(context, options.encryption);
  const request = await acquireRequest(context, { sandboxId: "", ...plan }, options);
  const handle = await context.backend(plan.backend).tryResume(request, options);
  if (handle === undefined) return undefined;
  const { sandboxId, copy } = parseCopyId(handle.sandboxId) ?? { sandboxId: handle.sandboxId, copy: 0 };
  const own = { sandboxId, copy, lineage: NO_LINEAGE, tokenHash: undefined, residence: "provider" } as const;
  const facts = factsOf(context, { ...plan, about: { ...plan.about, encryption } }, own);
  const sandbox = new LiveSandbox(facts, "restoring", context.nowMs, context.onMove(facts.sandboxId));
  takeShownKey(context, sandbox, options.encryption);
  context.admit(sandbox);
  try {
    await createHead(context, facts);
  } catch (error) {
    sandbox.moveTo("gone");
    const head = await context.durable.ownership.read(facts.sandboxId);
    // Leftovers of a deleted sandbox are removed too; a sandbox that another server owns is left to it.
    await (head?.state === "deleted" ? handle.destroy() : abandonCopy({ handle, facts }));
    if (head === undefined) throw error;
    return undefined;
  }
  const processes = await handle.processes().catch(() => []);
  let network: NetworkAccess;
  try {
    network = await openNetwork(context, facts, handle);
    if (!context.durable.ownership.holds(sandbox)) throw leaseLost();
  } catch (error) {
    sandbox.moveTo("gone");
    await abandonCopy({ handle, facts });
    throw error;
  }
  sandbox.started(handle, network);
  watchForEnd(context, sandbox, processes);
  return sandbox;
}
