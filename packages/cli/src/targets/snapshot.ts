import type { SnapshotInfo } from "@sandboxer/protocol";
import type { Transport } from "@sandboxer/client/transport";
import { allItems } from "../api/pages.ts";
import { isUuid } from "./uuid.ts";
import { pick } from "./match.ts";

/** The id of the target snapshot. */
export async function snapshotId(client: Transport, given: string): Promise<string> {
  return isUuid(given) ? given : (await findSnapshot(client, given)).id;
}

export async function findSnapshot(client: Transport, given: string): Promise<SnapshotInfo> {
  return pick(given, await allItems(client, "listSnapshots"), "snapshot", "snapshot_not_found");
}
