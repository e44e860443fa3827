import type { ObjectStore } from "../../store/store.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import { packsOfImage } from "../open-image.ts";
import { packKey } from "./pack-names.ts";
import { nothingIfDamaged } from "../image-errors.ts";

const READS_AT_ONCE = 16;
const IMAGE = /\.img$/;

/**
 * How many bytes would be freed without some images: their own objects, and the packs that no other image references.
 * An unreadable image may reference any pack; then no packs count, because none would be removed.
 */
export async function freedBytes(
  store: ObjectStore,
  imageKeys: readonly string[],
  signal?: AbortSignal,
): Promise<number> {
  const own = await sizesOf(store, imageKeys, signal);
  const named = await mapAtOnce(imageKeys, READS_AT_ONCE, async (key) => await packsOf(store, key), signal);
  if (named.some((packs) => packs === "unknown")) return own;
  const packs = new Set(named.flat());
  const going = new Set(imageKeys);
  const others: string[] = [];
  // Most share nothing with the rest of the store: only shared packs need a search of all images.
  if (packs.size > 0) {
    for await (const { key } of store.list("")) if (IMAGE.test(key) && !going.has(key)) others.push(key);
  }
  const strike = async (key: string): Promise<void> => {
    if (packs.size === 0) return;
    const needed = await packsOf(store, key);
    if (needed === "unknown") packs.clear();
    else for (const id of needed) packs.delete(id);
  };
  await mapAtOnce(others, READS_AT_ONCE, strike, signal);
  return own + (await sizesOf(store, [...packs].map(packKey), signal));
}

async function sizesOf(store: ObjectStore, keys: readonly string[], signal: AbortSignal | undefined): Promise<number> {
  const size = async (key: string): Promise<number> => (await store.stat(key))?.sizeBytes ?? 0;
  return (await mapAtOnce(keys, READS_AT_ONCE, size, signal)).reduce((sum, bytes) => sum + bytes, 0);
}

async function packsOf(store: ObjectStore, key: string): Promise<readonly string[] | "unknown"> {
  const reading = packsOfImage(store, key).then((packs) => packs ?? []);
  return (await reading.catch(nothingIfDamaged)) ?? "unknown";
}
