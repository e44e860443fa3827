import { mapAtOnce } from "../../support/map-at-once.ts";
import type { ImageContext } from "../image-context.ts";
import { openPackFiles, type PackFiles } from "./pack-files.ts";

const FETCHES_AT_ONCE = 4;

/** Brings packs of an image here, a few at a time, and keeps them until it is closed; who needs one waits for it alone. */
export class PackFetches {
  readonly #files: PackFiles;
  readonly #fetches: ReadonlyMap<number, PromiseWithResolvers<string>>;
  /** Aborted when nobody waits for a pack any more. */
  readonly #over = new AbortController();

  /** `packs`: their numbers in the image, and their ids. */
  constructor(
    { store, cache }: Pick<ImageContext, "store" | "cache">,
    packs: ReadonlyMap<number, string>,
    signal: AbortSignal | undefined,
  ) {
    this.#files = openPackFiles(store, cache);
    this.#fetches = new Map([...packs.keys()].map((pack) => [pack, Promise.withResolvers<string>()]));
    const until = signal === undefined ? this.#over.signal : AbortSignal.any([signal, this.#over.signal]);
    const fetch = async ([pack, { promise, resolve, reject }]: [number, PromiseWithResolvers<string>]) => {
      promise.catch(() => {});
      await this.#files.file(packs.get(pack) ?? "", until).then(resolve, reject);
    };
    void mapAtOnce([...this.#fetches], FETCHES_AT_ONCE, fetch);
  }

  /** Where a pack lies; throws ObjectNotFoundError. */
  async file(pack: number): Promise<string> {
    return (await this.#fetches.get(pack)?.promise) ?? "";
  }

  async close(): Promise<void> {
    this.#over.abort();
    await Promise.allSettled([...this.#fetches.values()].map(({ promise }) => promise));
    await this.#files.close();
  }
}
