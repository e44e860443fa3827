import type { SnapshotRepository } from "../../../checkpoints/snapshot-repository.ts";
import { checkpointKey, checkpointMs } from "../../../checkpoints/checkpoint-names.ts";
import { imageKey, type StoredSnapshot } from "../../../checkpoints/snapshot-record.ts";
import type { StoredSandbox } from "../../../lease/stored-sandboxes.ts";

/** References to images in heads and records. */
export interface StoredImages {
  /** By image key; undefined if the digest is not recorded. */
  readonly digests: ReadonlyMap<string, string | undefined>;
  /** Images that sandboxes resume from. */
  readonly current: ReadonlySet<string>;
  readonly snapshots: ReadonlyMap<string, StoredSnapshot>;
}

export interface ImageOwner {
  readonly sandboxId: string | null;
  readonly checkpoint: string | null;
  readonly snapshotId: string | null;
}

export async function readStoredImages(
  heads: AsyncIterable<StoredSandbox>,
  library: Pick<SnapshotRepository, "list">,
): Promise<StoredImages> {
  const digests = new Map<string, string | undefined>();
  const current = new Set<string>();
  for await (const { sandboxId, head } of heads) {
    if (head === undefined || head.state === "deleted") continue;
    const { checkpoint, lineage } = head;
    if (checkpoint !== null) {
      digests.set(checkpointKey(sandboxId, checkpoint.name), checkpoint.sha256);
      current.add(checkpointKey(sandboxId, checkpoint.name));
    } else if (lineage.snapshot != null) current.add(imageKey(lineage.snapshot));
  }
  const snapshots = new Map<string, StoredSnapshot>();
  for (const snapshot of await library.list()) {
    if (snapshot.image_sha256 === null) continue;
    digests.set(imageKey(snapshot.id), snapshot.image_sha256);
    snapshots.set(imageKey(snapshot.id), snapshot);
  }
  return { digests, current, snapshots };
}

/** The owner of an image, by its key. */
export function ownerOf(key: string, { snapshots }: Pick<StoredImages, "snapshots">): ImageOwner {
  const [first = "", second = "", third = ""] = key.split("/");
  if (second === "checkpoints" && checkpointMs(third) !== undefined) {
    return { sandboxId: first, checkpoint: third, snapshotId: null };
  }
  const snapshotId = first === "snapshots" && key === imageKey(second) ? second : null;
  return { sandboxId: snapshots.get(key)?.sandbox_id ?? null, checkpoint: null, snapshotId };
}
