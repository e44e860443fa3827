import type { ObjectStore } from "../../store/store.ts";

/** Five times the usual size: a pack that claims to be larger is invalid. */
export const LARGEST_PACK_BYTES = 256 * 1024 * 1024;

const PACKS_FOLDER = "packs";
const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const PACK_ID = new RegExp(`^(?:(${UUID})\\.)?(${UUID})-\\d{1,6}$`);
const PACK_SUFFIX = ".pack";
const MARK_SUFFIX = ".shared";

/**
 * `writerId` is fresh for each image; packs are numbered. `owner` is the sandbox or snapshot of the image. Packs of
 * images before format 3 have no owner.
 */
export function packId(writerId: string, number: number, owner?: string): string {
  return `${owner === undefined ? "" : `${owner}.`}${writerId}-${number}`;
}

export function isPackId(text: string): boolean {
  return PACK_ID.test(text);
}

/** The owner of a pack, if its id has one. */
export function ownerOf(id: string): string | undefined {
  return PACK_ID.exec(id)?.[1];
}

/** The writer of a pack; undefined for a text that is not a pack id. */
export function writerOf(id: string): string | undefined {
  return PACK_ID.exec(id)?.[2];
}

export function packKey(id: string): string {
  return keyOf(id, PACK_SUFFIX);
}

/** The mark that images of other owners use or used a pack. */
export function sharedMarkKey(id: string): string {
  return keyOf(id, MARK_SUFFIX);
}

/** Where all packs of an owner are. */
export function ownedPacksFolder(owner: string): string {
  return `${PACKS_FOLDER}/${owner}`;
}

/** Undefined for a key that is not a pack's. */
export function packIdOf(key: string): string | undefined {
  return idIn(key, PACK_SUFFIX);
}

export interface ListedPacks {
  /** Their sizes, by their ids. */
  readonly packs: ReadonlyMap<string, number>;
  /** The packs that are marked as shared. */
  readonly marked: ReadonlySet<string>;
}

/** The existing packs: all, or those in the folder of an owner. */
export async function listPacks(store: ObjectStore, folder: string = PACKS_FOLDER): Promise<ListedPacks> {
  const packs = new Map<string, number>();
  const marked = new Set<string>();
  for await (const { key, sizeBytes } of store.list(folder)) {
    const [id, markedId] = [packIdOf(key), idIn(key, MARK_SUFFIX)];
    if (id !== undefined) packs.set(id, sizeBytes);
    if (markedId !== undefined) marked.add(markedId);
  }
  return { packs, marked };
}

function keyOf(id: string, suffix: string): string {
  return `${PACKS_FOLDER}/${id.replace(".", "/")}${suffix}`;
}

function idIn(key: string, suffix: string): string | undefined {
  if (!key.startsWith(`${PACKS_FOLDER}/`) || !key.endsWith(suffix)) return undefined;
  const id = key.slice(PACKS_FOLDER.length + 1, -suffix.length).replace("/", ".");
  return isPackId(id) ? id : undefined;
}
