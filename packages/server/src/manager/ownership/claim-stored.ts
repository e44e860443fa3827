import type { Head } from "@sandboxer/protocol";
import type { ClaimOptions } from "../../lease/ownership.ts";
import type { ManagerContext } from "../context.ts";
import { publishBeforeClaim } from "./publish-unpublished.ts";

/** Claims a stored sandbox at its newest state, which may first have to be published from this machine. */
export async function claimStored(context: ManagerContext, sandboxId: string, options?: ClaimOptions): Promise<Head> {
  await publishBeforeClaim(context, sandboxId);
  return await context.durable.ownership.claim(sandboxId, options);
}
