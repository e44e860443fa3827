import { randomUUID } from "node:crypto";
import type { ObjectStore } from "../../store/store.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import { condemn } from "./condemned.ts";
import { packKey, sharedMarkKey } from "./pack-names.ts";
import { readPins } from "./pins.ts";

const REMOVALS_AT_ONCE = 16;

/** The users of packs, as far as known. */
export interface Need {
  readonly isNeeded: (packId: string) => boolean;
  /** The keys of unreadable images: each may need any pack. */
  readonly unreadable: readonly string[];
}

export interface RemovedPacks {
  readonly ids: readonly string[];
  readonly unreadablePins: readonly string[];
  readonly unreadableImages: readonly string[];
}

/**
 * Removes packs that no writer has pinned and nobody needs. They are condemned first; then the pins are read, and then
 * the users: `PackPins` explains why that order is enough. Without `apply` it reports what would be removed.
 */
export async function removePacks(
  store: ObjectStore,
  candidates: readonly string[],
  look: () => Promise<Need>,
  { apply = true, signal }: { readonly apply?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<RemovedPacks> {
  if (candidates.length === 0) return { ids: [], unreadablePins: [], unreadableImages: [] };
  const verdictKey = apply ? await condemn(store, randomUUID(), candidates) : undefined;
  try {
    const { isPinned, unreadable: unreadablePins } = await readPins(store, signal);
    const { isNeeded, unreadable: unreadableImages } = await look();
    const isClear = unreadablePins.length + unreadableImages.length === 0;
    const ids = isClear ? candidates.filter((id) => !isPinned(id) && !isNeeded(id)) : [];
    if (apply) await mapAtOnce(ids, REMOVALS_AT_ONCE, async (id) => await removePack(store, id), signal);
    return { ids, unreadablePins, unreadableImages };
  } finally {
    // No image references these packs, and none ever will: a delayed removal does no harm.
    if (verdictKey !== undefined) await store.delete(verdictKey);
  }
}

/** The mark first: an interrupted removal leaves no mark without a pack. */
async function removePack(store: ObjectStore, id: string): Promise<void> {
  await store.delete(sharedMarkKey(id));
  await store.delete(packKey(id));
}
