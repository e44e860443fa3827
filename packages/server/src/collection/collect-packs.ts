import { packIdOf, packKey, PACKS_FOLDER } from "../checkpoints/packs/pack-names.ts";
import type { ObjectStore } from "../store/store.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { collectPins } from "./collect-pins.ts";
import { type CollectionContext, type Findings, type Garbage, together } from "./garbage.ts";
import type { PackSurveyor } from "./pack-survey.ts";

const REMOVALS_AT_ONCE = 16;

/**
 * Removes packs that no image names and no writer has pinned. The packs are listed first: one that comes later is not
 * judged. Then the images, then the pins, then the images once more: why that is enough is said at `PackPins`. A removal
 * that comes late, from whomever, finds a pack that is still unneeded, or none.
 *
 * Images that are `going`, which a dry run only foresees, need nothing.
 */
export async function collectPacks(
  context: CollectionContext,
  surveyor: PackSurveyor,
  going: ReadonlySet<string>,
): Promise<Findings> {
  const { store, apply, signal } = context;
  const packs = await listPacks(store);
  if (packs.size === 0) return await collectPins(context, (await surveyor.pins(store, signal)).pins);
  const first = await surveyor.images(store, going, signal);
  const unnamed = [...packs.keys()].filter((id) => !first.named.has(id));
  const { pins, isPinned, unreadable } = await surveyor.pins(store, signal);
  const last = unnamed.length === 0 ? first : await surveyor.images(store, going, signal);
  const left = [...unreadable, ...last.unreadable];
  // What cannot be read may need any of them.
  const unneeded = left.length > 0 ? [] : unnamed.filter((id) => !last.named.has(id) && !isPinned(id));
  if (apply) await mapAtOnce(unneeded, REMOVALS_AT_ONCE, async (id) => await store.delete(packKey(id)), signal);
  const garbage = unneeded.map((id): Garbage => ({ kind: "pack", key: packKey(id), sizeBytes: packs.get(id) ?? 0 }));
  return together([{ garbage, left }, await collectPins(context, pins)]);
}

async function listPacks(store: ObjectStore): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for await (const { key, sizeBytes } of store.list(PACKS_FOLDER)) {
    const id = packIdOf(key);
    if (id !== undefined) sizes.set(id, sizeBytes);
  }
  return sizes;
}
