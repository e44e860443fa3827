import type { SandboxRecord } from "@sandboxer/protocol";
import type { ObservingContext } from "../room-contexts.ts";
import { describeLive, describeStored } from "./describe.ts";
import { notFound } from "../not-found.ts";

/** One sandbox, wherever it is: here, at another server, stored, or destroyed. */
export async function findSandbox(context: ObservingContext, sandboxId: string): Promise<SandboxRecord> {
  const live = context.sandboxes.get(sandboxId);
  if (live !== undefined) return describeLive(context, live);
  const head = await context.storedHead(sandboxId);
  if (head === undefined) throw notFound(sandboxId);
  return describeStored(context, sandboxId, head);
}
