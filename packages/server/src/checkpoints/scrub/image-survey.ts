import { isDamaged } from "../image-errors.ts";
import { packsOfImage } from "../open-image.ts";
import type { ObjectStore } from "../../store/store.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";

const READS_AT_ONCE = 16;
/** At any path, as for the collection of packs. */
const IMAGE = /\.img$/;

export interface SurveyedImage {
  readonly key: string;
  readonly sizeBytes: number;
  /** Empty if they are unknown. */
  readonly packs: readonly string[];
}

/** The images of a store with their packs. Images that disappear meanwhile are left out. */
export async function surveyImages(
  store: ObjectStore,
  wanted: (key: string) => boolean,
  signal?: AbortSignal,
): Promise<readonly SurveyedImage[]> {
  const listed: { key: string; sizeBytes: number }[] = [];
  for await (const { key, sizeBytes } of store.list("")) {
    if (IMAGE.test(key) && wanted(key)) listed.push({ key, sizeBytes });
  }
  const ids = new Map<string, string>();
  // One string for each id, however many images reference it.
  const once = (id: string): string => ids.get(id) ?? (ids.set(id, id), id);
  const read = async ({ key, sizeBytes }: (typeof listed)[number]): Promise<readonly SurveyedImage[]> => {
    const packs = await packsOfImage(store, key).catch(noneIfDamaged);
    return packs === undefined ? [] : [{ key, sizeBytes, packs: packs.map(once) }];
  };
  return (await mapAtOnce(listed, READS_AT_ONCE, read, signal)).flat();
}

/** Images that share packs are adjacent, so that knowledge about a pack can be dropped soon. */
export function inFamilies(images: readonly SurveyedImage[]): readonly SurveyedImage[] {
  const parents = images.map((_, index) => index);
  const root = (index: number): number => {
    let at = index;
    while (parents[at] !== at) {
      // Path compression.
      parents[at] = parents[parents[at] ?? at] ?? at;
      at = parents[at] ?? at;
    }
    return at;
  };
  const firstOf = new Map<string, number>();
  for (const [index, { packs }] of images.entries()) {
    for (const pack of packs) {
      const first = firstOf.get(pack);
      if (first === undefined) firstOf.set(pack, index);
      else parents[root(index)] = root(first);
    }
  }
  return [...Map.groupBy(images.keys(), root).values()].flat().flatMap((index) => images[index] ?? []);
}

function noneIfDamaged(error: unknown): readonly string[] {
  if (isDamaged(error)) return [];
  throw error;
}
