import { IN_IMAGE } from "../blocks/block-table.ts";
import type { PackWriter, WrittenPack } from "../packs/pack-writer.ts";

/** Up to this size, new blocks stay in the image itself: a save of a small change is one object. */
const LARGEST_IN_IMAGE_BYTES = 128 * 1024;

/** The location of a block; changes once if the blocks in the image are moved to a pack after all. */
export interface BlockPlace {
  pack: number;
  offset: number;
}

/** Collects the new blocks of an image: in the image while they are few, and in packs from then on. */
export class BlockSink {
  readonly #beginPacks: () => Promise<PackWriter>;
  #inImage: { readonly bytes: Uint8Array; readonly place: BlockPlace }[] = [];
  #inImageBytes = 0;
  #packs: PackWriter | undefined;

  /** `beginPacks` is called when the first pack is needed. */
  constructor(beginPacks: () => Promise<PackWriter>) {
    this.#beginPacks = beginPacks;
  }

  async add(bytes: Uint8Array): Promise<BlockPlace> {
    if (this.#packs === undefined && this.#inImageBytes + bytes.byteLength > LARGEST_IN_IMAGE_BYTES)
      await this.#spill();
    if (this.#packs !== undefined) return { ...(await this.#packs.add(bytes)) };
    const place = { pack: IN_IMAGE, offset: this.#inImageBytes };
    this.#inImage.push({ bytes, place });
    this.#inImageBytes += bytes.byteLength;
    return place;
  }

  async finish(): Promise<{ readonly inImage: Uint8Array; readonly packs: readonly WrittenPack[] }> {
    const packs = (await this.#packs?.finish()) ?? [];
    return { inImage: Buffer.concat(this.#inImage.map(({ bytes }) => bytes)), packs };
  }

  async abort(reason: Error): Promise<void> {
    await this.#packs?.abort(reason);
  }

  async #spill(): Promise<void> {
    const packs = await this.#beginPacks();
    this.#packs = packs;
    for (const { bytes, place } of this.#inImage) Object.assign(place, await packs.add(bytes));
    this.#inImage = [];
    this.#inImageBytes = 0;
  }
}
