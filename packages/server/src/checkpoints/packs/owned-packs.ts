import type { ObjectStore } from "../../store/store.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import { isDamaged, nothingIfDamaged } from "../image-errors.ts";
import { packsOfImage, type PacksOfImage, readAnyEnvelope } from "../open-image.ts";
import { listPacks, ownedPacksFolder, ownerOf, sharedMarkKey } from "./pack-names.ts";
import { type Need, removePacks } from "./remove-packs.ts";

const REQUESTS_AT_ONCE = 16;
const IMAGE = /\.img$/;

/**
 * A pack is owned by the sandbox or the snapshot whose image it was written for. An image of anybody else that takes
 * blocks from it marks it as shared first, and the mark stays for as long as the pack does. So a pack without a mark was
 * never used but by its owner's images, and goes with them; one with a mark waits for a collection.
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

/** What goes with the images of a sandbox or a snapshot, and what waits for a collection. */
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

/** Removes the packs that only images of their owner have used, once these images are gone. */
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

/** An image that is still there, of a save that was under way, keeps its packs as any image does. */
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
