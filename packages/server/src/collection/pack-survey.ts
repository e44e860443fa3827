import type { PacksOfImage } from "../checkpoints/open-image.ts";
import type { ObjectStore } from "../store/store.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { isDamaged } from "../checkpoints/image-errors.ts";

const READS_AT_ONCE = 16;

/** At any path, so that a future kind of image does not lose its packs. */
const IMAGE = /\.img$/;

interface SightedImages {
  /** The packs that any image references. */
  readonly named: ReadonlySet<string>;
  /** The keys of images whose packs are unknown. */
  readonly unreadable: readonly string[];
}

/** Finds the needed packs repeatedly; an image, which never changes, is read once. */
export class PackSurveyor {
  readonly #packsOfImage: PacksOfImage;
  /** Interned strings of pack ids. */
  #known = new Map<string, readonly string[]>();

  constructor(packsOfImage: PacksOfImage) {
    this.#packsOfImage = packsOfImage;
  }

  /** All images except those in `going`. */
  async images(store: ObjectStore, going: ReadonlySet<string>, signal?: AbortSignal): Promise<SightedImages> {
    const keys: string[] = [];
    for await (const { key } of store.list("")) if (IMAGE.test(key) && !going.has(key)) keys.push(key);
    const known = new Map<string, readonly string[]>();
    const shared = sharing(this.#known.values());
    const unreadable: string[] = [];
    const read = async (key: string): Promise<void> => {
      try {
        const packs = this.#known.get(key) ?? (await this.#packsOfImage(store, key))?.map(shared);
        if (packs !== undefined) known.set(key, packs);
      } catch (error) {
        if (!isDamaged(error)) throw error;
        unreadable.push(key);
      }
    };
    await mapAtOnce(keys, READS_AT_ONCE, read, signal);
    this.#known = known;
    const named = new Set<string>();
    for (const packs of known.values()) for (const id of packs) named.add(id);
    return { named, unreadable };
  }
}

/** Returns the same string for the same id: many images name a pack. */
function sharing(known: Iterable<readonly string[]>): (id: string) => string {
  const ids = new Map<string, string>();
  const shared = (id: string): string => {
    const same = ids.get(id);
    if (same === undefined) ids.set(id, id);
    return same ?? id;
  };
  for (const packs of known) for (const id of packs) shared(id);
  return shared;
}
