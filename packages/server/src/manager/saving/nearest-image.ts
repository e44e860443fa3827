import { checkpointKey } from "../../checkpoints/checkpoint-names.ts";
import { imageKey } from "../../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

/** Images further back have little in common with the current state. */
const MOST_IMAGES = 8;

/** An image was made of the sandbox's state. */
export function noteImage(sandbox: Pick<LiveSandbox, "newestImages">, key: string): void {
  sandbox.newestImages = [key, ...sandbox.newestImages].slice(0, MOST_IMAGES);
}

/**
 * The image that resembles the sandbox's current state most, so that a save writes only the changes: the newest image
 * that was made of it here and still exists, or the one that it was restored from. That one need not be looked up: it
 * is kept as long as the sandbox needs it.
 */
export async function nearestImage(
  { options: { durable } }: { readonly options: Pick<ManagerContext["options"], "durable"> },
  sandbox: Pick<LiveSandbox, "id" | "newestImages" | "parentCheckpoint" | "facts">,
): Promise<string | undefined> {
  const origin = originOf(sandbox);
  for (const key of sandbox.newestImages) {
    if (key === origin || (await durable.checkpoints.hasImage(key))) return key;
  }
  return origin;
}

function originOf({
  id,
  parentCheckpoint,
  facts,
}: Pick<LiveSandbox, "id" | "parentCheckpoint" | "facts">): string | undefined {
  if (parentCheckpoint !== null) return checkpointKey(id, parentCheckpoint);
  const { snapshot } = facts.lineage;
  return snapshot == null ? undefined : imageKey(snapshot);
}
