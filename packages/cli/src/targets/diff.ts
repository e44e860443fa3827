import type { Transport } from "@sandboxer/client/transport";
import { sandboxId } from "./sandbox.ts";
import { snapshotId } from "./snapshot.ts";

const LIVE = "sandbox:";

/** The other side of a comparison: a snapshot, or `sandbox:NAME`. */
export async function diffTarget(client: Transport, given: string): Promise<string> {
  if (!given.startsWith(LIVE)) return snapshotId(client, given);
  return LIVE + (await sandboxId(client, given.slice(LIVE.length)));
}
