import type { ObjectStore } from "../../store/store.ts";

const PACKS_FOLDER = "packs";
const PACK_ID = /^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})-(\d{1,6})$/;
const SUFFIX = ".pack";

/** `writerId` is fresh for each image that is written; it counts its packs. */
export function packId(writerId: string, number: number): string {
  return `${writerId}-${number}`;
}

export function isPackId(text: string): boolean {
  return PACK_ID.test(text);
}

/** Who wrote a pack; undefined for a text that is no pack's id. */
export function writerOf(id: string): string | undefined {
  return PACK_ID.exec(id)?.[1];
}

export function packKey(id: string): string {
  return `${PACKS_FOLDER}/${id}${SUFFIX}`;
}

/** Undefined for a key that is no pack's. */
export function packIdOf(key: string): string | undefined {
  const name = key.startsWith(`${PACKS_FOLDER}/`) && key.endsWith(SUFFIX) ? key.slice(PACKS_FOLDER.length + 1) : "";
  const id = name.slice(0, -SUFFIX.length);
  return isPackId(id) ? id : undefined;
}

/** The packs that are there, with their sizes. */
export async function listPacks(store: ObjectStore): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for await (const { key, sizeBytes } of store.list(PACKS_FOLDER)) {
    const id = packIdOf(key);
    if (id !== undefined) sizes.set(id, sizeBytes);
  }
  return sizes;
}
