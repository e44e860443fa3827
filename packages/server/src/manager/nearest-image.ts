import { checkpointKey } from "../checkpoints/checkpoint-names.ts";
import { imageKey } from "../checkpoints/snapshot-record.ts";
import type { LiveSandbox } from "./live-sandbox.ts";

/**
 * The image that the sandbox's present state resembles most, so that a save writes what has changed since: the newest that
 * was made of it here, or else the one that it came from.
 */
export function nearestImage({ id, newestImage, parentCheckpoint, facts }: LiveSandbox): string | undefined {
  if (newestImage !== undefined) return newestImage;
  if (parentCheckpoint !== null) return checkpointKey(id, parentCheckpoint);
  const { snapshot } = facts.lineage;
  return snapshot == null ? undefined : imageKey(snapshot);
}
