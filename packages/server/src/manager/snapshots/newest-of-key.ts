import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "../context.ts";

/** The newest snapshot of a sandbox that was asked for by this key and made of the same. */
export async function newestSnapshotOf(
  { options }: ManagerContext,
  key: string,
  specHash: string | null,
): Promise<StoredSnapshot | undefined> {
  const fitting = (await options.durable.snapshots.list()).filter(
    (snapshot) => snapshot.state === "ready" && snapshot.key === key && snapshot.spec_hash === specHash,
  );
  return fitting.toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1))[0];
}
