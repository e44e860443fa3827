import { writerOf } from "../checkpoints/packs/pack-names.ts";
import { PINS_FOLDER, readPin, type StoredPin } from "../checkpoints/packs/pins.ts";
import type { ObjectStore } from "../store/store.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { isDamaged } from "../checkpoints/image-errors.ts";

const READS_AT_ONCE = 16;

/** Wherever it is: whoever writes images of another sort some day does not lose their packs. */
const IMAGE = /\.img$/;

/** The ids of the packs that an image names; undefined when it is not there, `image_damaged` when nobody can tell. */
export type PacksOfImage = (store: ObjectStore, imageKey: string) => Promise<readonly string[] | undefined>;

/** What could not be judged, and why; see `LeftAlone`. */
interface Unreadable {
  readonly key: string;
  readonly reason: "its packs cannot be told" | "its record cannot be read";
}

export interface SightedPin {
  readonly key: string;
  readonly pin: StoredPin;
}

interface SightedPins {
  readonly pins: readonly SightedPin[];
  readonly isPinned: (packId: string) => boolean;
  readonly unreadable: readonly Unreadable[];
}

interface SightedImages {
  /** The packs that any of them names. */
  readonly named: ReadonlySet<string>;
  readonly unreadable: readonly Unreadable[];
}

/** Looks at who needs packs, again and again; an image, which never changes, is read once. */
export class PackSurveyor {
  readonly #packsOfImage: PacksOfImage;
  /** Images that share packs share the strings of their ids. */
  #known = new Map<string, readonly string[]>();

  constructor(packsOfImage: PacksOfImage) {
    this.#packsOfImage = packsOfImage;
  }

  /** All images but those that are `going`. */
  async images(store: ObjectStore, going: ReadonlySet<string>, signal?: AbortSignal): Promise<SightedImages> {
    const keys: string[] = [];
    for await (const { key } of store.list("")) if (IMAGE.test(key) && !going.has(key)) keys.push(key);
    const known = new Map<string, readonly string[]>();
    const shared = sharing(this.#known.values());
    const unreadable: Unreadable[] = [];
    const read = async (key: string): Promise<void> => {
      try {
        const packs = this.#known.get(key) ?? (await this.#packsOfImage(store, key))?.map(shared);
        if (packs !== undefined) known.set(key, packs);
      } catch (error) {
        if (!isDamaged(error)) throw error;
        unreadable.push({ key, reason: "its packs cannot be told" });
      }
    };
    await mapAtOnce(keys, READS_AT_ONCE, read, signal);
    this.#known = known;
    const named = new Set<string>();
    for (const packs of known.values()) for (const id of packs) named.add(id);
    return { named, unreadable };
  }

  async pins(store: ObjectStore, signal?: AbortSignal): Promise<SightedPins> {
    const keys = await Array.fromAsync(store.list(PINS_FOLDER), ({ key }) => key);
    const unreadable: Unreadable[] = [];
    const read = async (key: string): Promise<readonly SightedPin[]> => {
      const pin = await readPin(store, key);
      if (pin === "unreadable") unreadable.push({ key, reason: "its record cannot be read" });
      return pin === undefined || pin === "unreadable" ? [] : [{ key, pin }];
    };
    const pins = (await mapAtOnce(keys, READS_AT_ONCE, read, signal)).flat();
    const used = new Set(pins.flatMap(({ pin }) => pin.uses));
    const writers = new Set(pins.map(({ pin }) => pin.uuid));
    return { pins, unreadable, isPinned: (packId) => used.has(packId) || writers.has(writerOf(packId) ?? "") };
  }
}

/** Gives the same string for the same id: a pack is named by many images. */
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
