import { SandboxerError } from "@sandboxer/protocol";
import { openImage } from "../checkpoints/open-image.ts";
import { readHead } from "../lease/stored-head.ts";
import type { ObjectStore } from "../store/store.ts";
import { isStoreFailure } from "./store-failure.ts";
import type { Servers } from "./servers.ts";

/**
 * Whether a living server may be about to publish an image of a filesystem snapshot. Only the owner of the sandbox that it
 * was taken of does that, and does not let go of the sandbox before. Sandboxes that are not durable have no head: theirs
 * may be under way at any server that lives.
 */
export async function mayBePublished(store: ObjectStore, key: string, servers: Servers): Promise<boolean> {
  const anyLives = servers.living.size > 0;
  try {
    const { manifest } = await openImage(store, key);
    const head = await readHead(store, manifest.sandbox_id);
    if (head === undefined) return anyLives;
    return head.owner !== null && !servers.dead.has(head.owner);
  } catch (error) {
    if (!(error instanceof SandboxerError) || isStoreFailure(error)) throw error;
    return anyLives;
  }
}
