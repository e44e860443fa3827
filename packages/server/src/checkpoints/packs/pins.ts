import { z } from "zod";
import { type ObjectStore, readWhole } from "../../store/store.ts";
import { readCondemned } from "./condemned.ts";
import { jsonOf } from "../../support/json.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import { unlessDamaged } from "../../support/record-damage.ts";
import { writerOf } from "./pack-names.ts";

const READS_AT_ONCE = 16;
export const PINS_FOLDER = "pins";

/** `pins/{uuid}.json`: the packs that an unfinished image needs, until the image itself references them. */
const pinSchema = z.looseObject({
  format: z.literal(1),
  /** The server that writes it. */
  publisher: z.string().regex(/^[A-Za-z0-9-]{0,64}$/),
  /** The prefix of its own packs' ids. */
  uuid: z.string(),
  /** Packs of others that it may use. */
  uses: z.array(z.string()),
});
export type StoredPin = z.infer<typeof pinSchema>;

export interface PinRequest {
  /** Fresh for each image; the ids of its packs are `{uuid}-{n}`. */
  readonly uuid: string;
  /** The key of the image whose packs are reused, and the ids of these packs. */
  readonly base?: { readonly imageKey: string; readonly packs: readonly string[] };
}

/** Held from before the first pack is written until the image exists, or until its packs were removed again. */
export interface PackPin {
  /** True for a pack of the base that may be removed, or is missing: its blocks must be written again. */
  readonly isCondemned: (packId: string) => boolean;
  /** Never fails: a leftover pin only costs space, and is removed with the next one or after this server's death. */
  readonly release: () => Promise<void>;
}

/**
 * Keeps packs from collection while an image is written that will name them.
 *
 * The order makes this safe. A collection writes which packs it condemns, then reads the pins, then the images, and
 * removes packs that none of them references. A writer pins, then reads the verdicts, then checks that its base exists,
 * and removes the pin only when its own image exists. A writer that reads too early to see a verdict had pinned before:
 * the collection then sees the pin or, if that was removed, the image. A writer that reads during the verdict does not
 * use the pack. A writer that reads after it checks the base later than the collection read the images: if the base
 * exists, it existed then, and references the packs. Verdicts are needed because a pack can move from image to image
 * without the collection noticing.
 */
export class PackPins {
  readonly #store: ObjectStore;
  readonly #publisher: () => string;
  /** Pins that could not be removed. */
  readonly #stale = new Set<string>();

  constructor(store: ObjectStore, publisher: () => string) {
    this.#store = store;
    this.#publisher = publisher;
  }

  async hold({ uuid, base }: PinRequest): Promise<PackPin> {
    const key = pinKey(uuid);
    const pin: StoredPin = { format: 1, publisher: this.#publisher(), uuid, uses: [...(base?.packs ?? [])] };
    const release = async (): Promise<void> => await this.#remove(key);
    try {
      await this.#store.writeText(key, `${JSON.stringify(pin)}\n`);
      const usable = base === undefined ? new Set<string>() : await this.#usableOf(base);
      return { isCondemned: (packId) => !usable.has(packId), release };
    } catch (error) {
      await release();
      throw error;
    }
  }

  async #usableOf({ imageKey, packs }: NonNullable<PinRequest["base"]>): Promise<ReadonlySet<string>> {
    const condemned = await readCondemned(this.#store);
    // Not before the other was answered: a collection that saw neither pin nor base could end in between.
    const hasBase = (await this.#store.stat(imageKey)) !== undefined;
    if (!hasBase || condemned.some((each) => each.packs === undefined)) return new Set();
    return new Set(packs).difference(new Set(condemned.flatMap((each) => each.packs ?? [])));
  }

  async #remove(key: string): Promise<void> {
    this.#stale.add(key);
    for (const stale of this.#stale) {
      try {
        await this.#store.delete(stale);
        this.#stale.delete(stale);
      } catch {
        // Removed with the next one.
      }
    }
  }
}

export function pinKey(uuid: string): string {
  return `${PINS_FOLDER}/${uuid}.json`;
}

/** Undefined if it was removed meanwhile, and "unreadable" if it may pin anything. */
export async function readPin(store: ObjectStore, key: string): Promise<StoredPin | "unreadable" | undefined> {
  const bytes = await readWhole(store, key).catch(unlessDamaged);
  if (bytes === undefined) return undefined;
  return bytes === "damaged" ? "unreadable" : (pinSchema.safeParse(jsonOf(bytes)).data ?? "unreadable");
}

export interface SightedPin {
  readonly key: string;
  readonly pin: StoredPin;
}

export interface SightedPins {
  readonly pins: readonly SightedPin[];
  readonly isPinned: (packId: string) => boolean;
  /** The keys of pins that this release cannot read: they may pin anything. */
  readonly unreadable: readonly string[];
}

export async function readPins(store: ObjectStore, signal?: AbortSignal): Promise<SightedPins> {
  const keys = await Array.fromAsync(store.list(PINS_FOLDER), ({ key }) => key);
  const unreadable: string[] = [];
  const read = async (key: string): Promise<readonly SightedPin[]> => {
    const pin = await readPin(store, key);
    if (pin === "unreadable") unreadable.push(key);
    return pin === undefined || pin === "unreadable" ? [] : [{ key, pin }];
  };
  const pins = (await mapAtOnce(keys, READS_AT_ONCE, read, signal)).flat();
  const used = new Set(pins.flatMap(({ pin }) => pin.uses));
  const writers = new Set(pins.map(({ pin }) => pin.uuid));
  return { pins, unreadable, isPinned: (packId) => used.has(packId) || writers.has(writerOf(packId) ?? "") };
}
