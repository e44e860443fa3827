import { type Condemned, readCondemned } from "../checkpoints/packs/condemned.ts";
import { listPacks, packKey } from "../checkpoints/packs/pack-names.ts";
import { readPins } from "../checkpoints/packs/pins.ts";
import { type Need, removePacks } from "../checkpoints/packs/remove-packs.ts";
import type { ObjectStore } from "../store/store.ts";
import { collectPins } from "./collect-pins.ts";
import { type CollectionContext, type Findings, type Garbage, type LeftAlone, leftAlone, together } from "./garbage.ts";
import type { PackSurveyor } from "./pack-survey.ts";

/**
 * Removes packs that no image references and no writer has pinned. The packs are listed first: later ones are not
 * considered. Images in `going`, which a dry run only predicts, need nothing.
 */
export async function collectPacks(
  context: CollectionContext,
  surveyor: PackSurveyor,
  going: ReadonlySet<string>,
): Promise<Findings> {
  const { store, apply, signal } = context;
  // Before the packs: a condemned pack existed then, and if it is not in the list it never will be again.
  const verdicts = await readCondemned(store);
  const { packs } = await listPacks(store);
  const look = async (): Promise<Need> => {
    const { named, unreadable } = await surveyor.images(store, going, signal);
    return { isNeeded: (id) => named.has(id), unreadable };
  };
  const first = packs.size === 0 ? undefined : await look();
  const { pins, isPinned, unreadable } = await readPins(store, signal);
  const candidates = [...packs.keys()].filter((id) => first?.isNeeded(id) === false && !isPinned(id));
  const removed =
    candidates.length === 0
      ? { ids: [], unreadablePins: unreadable, unreadableImages: first?.unreadable ?? [] }
      : await removePacks(store, candidates, look, { apply, signal });
  const left: LeftAlone[] = [
    ...removed.unreadablePins.map((key) => ({ key, reason: "its record cannot be read" }) as const),
    ...removed.unreadableImages.map((key) => ({ key, reason: "its packs are unknown" }) as const),
  ];
  const garbage = removed.ids.map((id): Garbage => ({ kind: "pack", key: packKey(id), sizeBytes: packs.get(id) ?? 0 }));
  const old = await collectVerdicts(store, verdicts, packs, apply);
  return together([{ garbage, left }, old, await collectPins(context, pins)]);
}

/**
 * A killed collection leaves its verdict behind. It stays while any of its packs exists, because that collection may
 * still be running: the packs are just not used for new images.
 */
async function collectVerdicts(
  store: ObjectStore,
  verdicts: readonly Condemned[],
  packs: ReadonlyMap<string, number>,
  apply: boolean,
): Promise<Findings> {
  const parts: Findings[] = [];
  for (const { key, packs: named } of verdicts) {
    if (named === undefined) parts.push(leftAlone(key, "its record cannot be read"));
    if (named === undefined || named.some((id) => packs.has(id))) continue;
    const found = await store.stat(key);
    if (found === undefined) continue;
    if (apply) await store.delete(key);
    parts.push({ garbage: [{ kind: "verdict", key, sizeBytes: found.sizeBytes }], left: [] });
  }
  return together(parts);
}
