import { z } from "zod";
import type { ObjectStore } from "../../store/store.ts";
import { parseOrUndefined, readCondemned, readSmallText } from "./condemned.ts";

export const PINS_FOLDER = "pins";

/** `pins/{uuid}.json`: what an image that is being written needs, until the image itself says so. */
const pinSchema = z.looseObject({
  format: z.literal(1),
  /** The server that writes it. */
  publisher: z.string(),
  /** What the ids of its own packs begin with. */
  uuid: z.string(),
  /** Packs of others that it may use. */
  uses: z.array(z.string()),
});
export type StoredPin = z.infer<typeof pinSchema>;

export interface PinRequest {
  /** Fresh for each image; the ids of its packs are `{uuid}-{n}`. */
  readonly uuid: string;
  /** The image whose packs are to be used again, by its key, and the ids of these packs. */
  readonly base?: { readonly imageKey: string; readonly packs: readonly string[] };
}

/** Held from before the first pack is written until the image is there, or until its packs were removed again. */
export interface PackPin {
  /** True for a pack of the base that may go, or is gone: its blocks must be written anew. */
  readonly isCondemned: (packId: string) => boolean;
  /** Never fails: a pin that stays costs room only, and goes with the next one or with this server. */
  readonly release: () => Promise<void>;
}

/**
 * Keeps packs from collection while an image is written that will name them.
 *
 * The order is what makes it hold. A collection condemns packs in an object, then looks at pins, then at images, and then
 * removes. A writer pins, then looks at what is condemned, then whether its base is still there, and removes the pin only
 * when its image is there. So of a collection that condemned too late for the writer to see, the last look is later than
 * the pin. And one that had ended before the writer looked had seen the base, which names the packs.
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
      return { isCondemned: await this.#judge(base), release };
    } catch (error) {
      await release();
      throw error;
    }
  }

  async #judge(base: PinRequest["base"]): Promise<(packId: string) => boolean> {
    if (base === undefined) return () => true;
    const condemned = await readCondemned(this.#store);
    const isThere = (await this.#store.stat(base.imageKey)) !== undefined;
    if (!isThere || condemned.some(({ packs }) => packs === undefined)) return () => true;
    const usable = new Set(base.packs).difference(new Set(condemned.flatMap(({ packs }) => packs ?? [])));
    return (packId) => !usable.has(packId);
  }

  async #remove(key: string): Promise<void> {
    this.#stale.add(key);
    for (const stale of this.#stale) {
      try {
        await this.#store.delete(stale);
        this.#stale.delete(stale);
      } catch {
        // With the next one.
      }
    }
  }
}

export function pinKey(uuid: string): string {
  return `${PINS_FOLDER}/${uuid}.json`;
}

/** Undefined when it has gone meanwhile, and "unreadable" when it may pin anything. */
export async function readPin(store: ObjectStore, key: string): Promise<StoredPin | "unreadable" | undefined> {
  const text = await readSmallText(store, key);
  return text === undefined ? undefined : (parseOrUndefined(pinSchema, text) ?? "unreadable");
}
