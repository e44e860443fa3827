/**
 * The result for an image. `damaged`: some of its data is. `unreadable`: its contents are unknown. `missing`: something
 * references it, but it does not exist. `locked`: it is encrypted with a key that this server does not have.
 */
export type ImageVerdict = "whole" | "damaged" | "unreadable" | "missing" | "locked";

export interface ImageProblem {
  readonly verdict: Exclude<ImageVerdict, "whole">;
  readonly problem: string;
}

/** A block whose stored bytes do not match what images say. */
export interface DamagedBlock {
  /** Undefined: it is in the image itself. */
  readonly pack: string | undefined;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly problem: string;
  /** Every image that needs it, including for a difference. */
  readonly images: Set<string>;
}

/** The damage found so far. */
export class Findings {
  readonly blocks = new Map<string, DamagedBlock>();
  /** With the images that reference each. */
  readonly missingPacks = new Map<string, Set<string>>();
  /** Images with damage other than a block or a pack. */
  readonly problems = new Map<string, ImageProblem>();

  get none(): boolean {
    return this.blocks.size === 0 && this.missingPacks.size === 0 && this.problems.size === 0;
  }

  /** The packs with damage. */
  get packs(): ReadonlySet<string> {
    const ofBlocks = [...this.blocks.values()].flatMap(({ pack }) => (pack === undefined ? [] : [pack]));
    return new Set([...ofBlocks, ...this.missingPacks.keys()]);
  }

  /** The image needs a block of a pack; whether that is known to be damaged. */
  hurtByBlock(image: string, pack: string, offset: number): boolean {
    const block = this.blocks.get(blockKey(pack, offset));
    block?.images.add(image);
    return block !== undefined;
  }

  hurtByPack(image: string, pack: string): void {
    const images = this.missingPacks.get(pack);
    if (images === undefined) this.missingPacks.set(pack, new Set([image]));
    else images.add(image);
  }

  damaged(image: string, block: Omit<DamagedBlock, "images">): void {
    const key = blockKey(block.pack ?? image, block.offset);
    const present = this.blocks.get(key);
    if (present === undefined) this.blocks.set(key, { ...block, images: new Set([image]) });
    else present.images.add(image);
  }

  /** Undefined: it is intact. */
  problemOf(image: string): ImageProblem | undefined {
    const own = this.problems.get(image);
    if (own !== undefined && own.verdict !== "locked") return own;
    const packs = [...this.missingPacks].filter(([, images]) => images.has(image)).map(([id]) => id);
    const blocks = this.blocks.values().filter(({ images }) => images.has(image));
    const count = blocks.reduce((sum) => sum + 1, 0);
    if (count === 0 && packs.length === 0) return own;
    const parts = [
      ...(count === 0 ? [] : [`${count} of its blocks ${count === 1 ? "is" : "are"} damaged`]),
      ...(packs.length === 0 ? [] : [`${packs.length === 1 ? "its pack" : "its packs"} ${packs.join(", ")} missing`]),
    ];
    return { verdict: "damaged", problem: parts.join(", ") };
  }

  /** Every image with a problem. */
  get hurtImages(): ReadonlySet<string> {
    const hurt = new Set(this.problems.keys());
    for (const { images } of this.blocks.values()) for (const image of images) hurt.add(image);
    for (const images of this.missingPacks.values()) for (const image of images) hurt.add(image);
    return hurt;
  }

  /** The image was removed, and its problems with it. */
  drop(image: string): void {
    this.problems.delete(image);
    for (const [key, { images }] of this.blocks) if (images.delete(image) && images.size === 0) this.blocks.delete(key);
    for (const [pack, images] of this.missingPacks)
      if (images.delete(image) && images.size === 0) this.missingPacks.delete(pack);
  }
}

function blockKey(where: string, offset: number): string {
  return `${where} ${offset}`;
}
