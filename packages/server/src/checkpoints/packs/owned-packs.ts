import type { ObjectStore } from "../../store/store.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import { isDamaged, nothingIfDamaged } from "../image-errors.ts";
import { packsOfImage, type PacksOfImage, readAnyEnvelope } from "../open-image.ts";
import { listPacks, ownedPacksFolder, ownerOf, sharedMarkKey } from "./pack-names.ts";
import { type Need, removePacks } from "./remove-packs.ts";

const REQUESTS_AT_ONCE = 16;
const IMAGE = /\.img$/;

/**
 * A pack is owned by the sandbox or snapshot whose image it was written for. An image of another owner that takes
 * blocks from it marks it as shared first, and the mark stays as long as the pack. So a pack without a mark was only
 * used by its owner's images, and is removed with them; a marked one waits for garbage collection.
 */
export async function markShared(
  store: ObjectStore,
  packs: readonly { readonly id: string }[],
  owner: string,
): Promise<void> {
  const others = packs.filter(({ id }) => ownerOf(id) !== undefined && ownerOf(id) !== owner);
  await mapAtOnce(others, REQUESTS_AT_ONCE, async ({ id }) => {
    await store.write(sharedMarkKey(id), [Buffer.from("Images of others use this pack.\n")], { ifAbsent: true });
  });
}

/** The bytes that are removed with the images of a sandbox or snapshot, and those that wait for garbage collection. */
export interface RemovedBytes {
  readonly removedBytes: number;
  readonly sharedBytes: number;
}

export async function weighRemoval(
  store: ObjectStore,
  owner: string,
  imageKeys: readonly string[],
): Promise<RemovedBytes> {
  const { packs, marked } = await listPacks(store, ownedPacksFolder(owner));
  const shared = new Map([...packs].filter(([id]) => marked.has(id)));
  let removedBytes = sum(packs.values()) - sum(shared.values());
  await mapAtOnce(imageKeys, REQUESTS_AT_ONCE, async (key) => {
    const image = await readAnyEnvelope(store, key).catch(nothingIfDamaged);
    removedBytes += image?.sizeBytes ?? (await store.stat(key))?.sizeBytes ?? 0;
    for (const { id, size_bytes: sizeBytes } of image?.envelope?.packs ?? []) {
      if (!packs.has(id)) shared.set(id, sizeBytes);
    }
  });
  return { removedBytes, sharedBytes: sum(shared.values()) };
}

/** Removes the packs that only images of their owner used, once these images are removed. */
export async function removeOwnPacks(
  store: ObjectStore,
  owner: string,
  imagesFolder: string,
  packsOf: PacksOfImage = packsOfImage,
): Promise<void> {
  const folder = ownedPacksFolder(owner);
  const { packs, marked } = await listPacks(store, folder);
  const alone = [...packs.keys()].filter((id) => !marked.has(id));
  await removePacks(store, alone, async () => {
    return await lookForOwn(store, folder, imagesFolder, packsOf);
  });
}

/** An image of a save in progress that still exists keeps its packs as any image does. */
async function lookForOwn(
  store: ObjectStore,
  folder: string,
  imagesFolder: string,
  packsOf: PacksOfImage,
): Promise<Need> {
  const { marked } = await listPacks(store, folder);
  const named = new Set<string>();
  const unreadable: string[] = [];
  for await (const { key } of store.list(imagesFolder)) {
    if (!IMAGE.test(key)) continue;
    try {
      for (const id of (await packsOf(store, key)) ?? []) named.add(id);
    } catch (error) {
      if (!isDamaged(error)) throw error;
      unreadable.push(key);
    }
  }
  return { isNeeded: (id) => marked.has(id) || named.has(id), unreadable };
}

function sum(sizes: Iterable<number>): number {
  let total = 0;
  for (const size of sizes) total += size;
  return total;
}
