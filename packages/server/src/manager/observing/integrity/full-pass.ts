import type { ScrubResult, StoreScrub } from "../../../checkpoints/scrub/store-scrub.ts";
import type { SnapshotRepository } from "../../../checkpoints/snapshot-repository.ts";
import type { StoredSandbox } from "../../../lease/stored-sandboxes.ts";
import type { CallOptions } from "../../../support/call-options.ts";
import { markSnapshots } from "./note-damage.ts";
import { readStoredImages, type StoredImages } from "./stored-images.ts";

/** The records that reference the images of a store. */
export interface ImageNames {
  readonly heads: () => AsyncIterable<StoredSandbox>;
  readonly snapshots: Pick<SnapshotRepository, "list" | "note">;
}

/** Checks everything that is stored; the snapshot records get the result. */
export async function fullPass(
  { heads, snapshots }: ImageNames,
  scrub: StoreScrub,
  options: CallOptions,
): Promise<{ readonly result: ScrubResult; readonly stored: StoredImages }> {
  const result = await scrub.run(async () => (await readStoredImages(heads(), snapshots)).digests, options);
  const stored = await readStoredImages(heads(), snapshots);
  await markSnapshots(snapshots, result, stored);
  return { result, stored };
}
