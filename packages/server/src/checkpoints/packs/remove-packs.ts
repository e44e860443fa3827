import { randomUUID } from "node:crypto";
import type { ObjectStore } from "../../store/store.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import { condemn } from "./condemned.ts";
import { packKey, sharedMarkKey } from "./pack-names.ts";
import { readPins } from "./pins.ts";

const REMOVALS_AT_ONCE = 16;

/** Who needs packs, as far as can be told. */
export interface Need {
  readonly isNeeded: (packId: string) => boolean;
  /** The keys of images that nobody can read: each may need any pack. */
  readonly unreadable: readonly string[];
}

export interface RemovedPacks {
  readonly ids: readonly string[];
  readonly unreadablePins: readonly string[];
  readonly unreadableImages: readonly string[];
}

/**
 * Removes packs that no writer has pinned and nobody needs. They are condemned first; then it looks at the pins, and then
 * asks who needs them: why that order is enough is said at `PackPins`. Without `apply` it says what would go.
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
    // No image names what was to be removed, and none ever will: a removal that comes late does no harm.
    if (verdictKey !== undefined) await store.delete(verdictKey);
  }
}

/** The mark goes first: a removal that is cut short leaves no mark without a pack. */
async function removePack(store: ObjectStore, id: string): Promise<void> {
  await store.delete(sharedMarkKey(id));
  await store.delete(packKey(id));
}
