import { randomUUID } from "node:crypto";
import { condemn, type Condemned, readCondemned } from "../checkpoints/packs/condemned.ts";
import { listPacks, packKey } from "../checkpoints/packs/pack-names.ts";
import type { ObjectStore } from "../store/store.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { collectPins } from "./collect-pins.ts";
import { type CollectionContext, type Findings, type Garbage, type LeftAlone, leftAlone, together } from "./garbage.ts";
import type { PackSurveyor } from "./pack-survey.ts";

const REMOVALS_AT_ONCE = 16;

/**
 * Removes packs that no image names and no writer has pinned. The packs are listed first: one that comes later is not
 * judged. Those that seem unneeded are condemned; then it looks at the pins, then at the images once more: why that is
 * enough is said at `PackPins`.
 *
 * Images that are `going`, which a dry run only foresees, need nothing.
 */
export async function collectPacks(
  context: CollectionContext,
  surveyor: PackSurveyor,
  going: ReadonlySet<string>,
): Promise<Findings> {
  const { store, apply, signal } = context;
  // Before the packs: one that was condemned was there then, and if it is not in the list it never will be again.
  const verdicts = await readCondemned(store);
  const packs = await listPacks(store);
  const images = packs.size === 0 ? undefined : await surveyor.images(store, going, signal);
  const { pins, isPinned, unreadable } = await surveyor.pins(store, signal);
  const seeming = [...packs.keys()].filter((id) => images?.named.has(id) === false && !isPinned(id));
  const { ids, left } =
    seeming.length === 0
      ? { ids: [], left: [...unreadable, ...(images?.unreadable ?? [])] }
      : await judge(context, surveyor, seeming, going);
  const garbage = ids.map((id): Garbage => ({ kind: "pack", key: packKey(id), sizeBytes: packs.get(id) ?? 0 }));
  const old = await collectVerdicts(store, verdicts, packs, apply);
  return together([{ garbage, left }, old, await collectPins(context, pins)]);
}

interface Judged {
  /** What is not needed, and is removed unless nothing is to be changed. */
  readonly ids: readonly string[];
  readonly left: readonly LeftAlone[];
}

async function judge(
  { store, apply, signal }: CollectionContext,
  surveyor: PackSurveyor,
  seeming: readonly string[],
  going: ReadonlySet<string>,
): Promise<Judged> {
  const verdictKey = apply ? await condemn(store, randomUUID(), seeming) : undefined;
  try {
    const { isPinned, unreadable } = await surveyor.pins(store, signal);
    const images = await surveyor.images(store, going, signal);
    const left = [...unreadable, ...images.unreadable];
    // What cannot be read may need any of them.
    const ids = left.length > 0 ? [] : seeming.filter((id) => !images.named.has(id) && !isPinned(id));
    if (apply) await mapAtOnce(ids, REMOVALS_AT_ONCE, async (id) => await store.delete(packKey(id)), signal);
    return { ids, left };
  } finally {
    // No image names what was to be removed, and none ever will: a removal that comes late does no harm.
    if (verdictKey !== undefined) await store.delete(verdictKey);
  }
}

/**
 * A collection that was killed has left its verdict. While any of its packs is there it stays, for that one may not be
 * dead: the packs are only not used for new images.
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
