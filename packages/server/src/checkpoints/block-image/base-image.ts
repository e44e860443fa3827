import { type BaseMember } from "../blocks/block-base.ts";
import { CODEC, countEntries, IN_IMAGE, readEntry } from "../blocks/block-table.ts";
import type { ImageContext } from "../image-context.ts";
import { isKeyProblem } from "../keys/key-errors.ts";
import { openImage } from "../open-image.ts";
import { inSlices } from "../../support/in-slices.ts";
import { type BlockContents, type OpenBlockImage, readBlockContents } from "./open-block-image.ts";
import { isDamaged } from "../image-errors.ts";

/** A pack of which an image uses less than this share is not reused, so that it can be removed some day. */
const SMALLEST_SHARE = 1 / 4;
/** The approximate limit of packs per image; beyond it, the blocks of the least used ones are written again. */
const MOST_PACKS = 32;

/** An image that another one can be written against. */
export interface BaseImage {
  readonly image: OpenBlockImage;
  readonly contents: BlockContents;
  /** The packs that are worth reusing. */
  readonly usefulPacks: readonly boolean[];
}

/** Undefined if nothing can be reused: then all blocks are new. */
export async function openBase(
  { store, dataKeys }: ImageContext,
  key: string,
  encryptionKeyId: string | undefined,
): Promise<BaseImage | undefined> {
  try {
    const image = await openImage(store, key, dataKeys);
    if (image.format === 1 || image.envelope.packs.length === 0) return undefined;
    // Data under one key is never referenced, or revealed by similarity, under another.
    if (image.envelope.encryption?.key_id !== encryptionKeyId) return undefined;
    const contents = await readBlockContents(store, image);
    return { image, contents, usefulPacks: await usefulPacks(image, contents) };
  } catch (error) {
    if (isKeyProblem(error) || isDamaged(error)) return undefined;
    throw error;
  }
}

export function baseMember({ image }: BaseImage, name: string): BaseMember | undefined {
  const found = image.manifest.members.find((member) => member.name === name);
  return found && { firstBlock: found.first_block, blockCount: found.blocks };
}

async function usefulPacks({ envelope }: OpenBlockImage, { table }: BlockContents): Promise<readonly boolean[]> {
  const usedBytes = envelope.packs.map(() => 0);
  const seen = new Set<number>();
  await inSlices(countEntries(table), (index) => {
    const { pack, offset, storedBytes, codec } = readEntry(table, index);
    // Both have 32 bits, and there are few packs.
    const place = pack * 2 ** 32 + offset;
    if (pack === IN_IMAGE || codec === CODEC.zero || seen.has(place)) return;
    seen.add(place);
    usedBytes[pack] = (usedBytes[pack] ?? 0) + storedBytes;
  });
  const mostUsed = usedBytes.toSorted((a, b) => b - a)[MOST_PACKS - 1] ?? 0;
  return envelope.packs.map(({ size_bytes: sizeBytes }, pack) => {
    const used = usedBytes[pack] ?? 0;
    return used >= sizeBytes * SMALLEST_SHARE && used >= mostUsed;
  });
}
