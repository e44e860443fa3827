import type { BlockReader } from "./block-reader.ts";
import { BLOCK_BYTES, CODEC, IN_IMAGE, LARGEST_DEPTH, NO_REFERENCE, referencesOf } from "./block-table.ts";
import type { BlockEntry, Codec } from "./block-table.ts";

/** Blocks of a member of the base image, by their entries. */
export interface BaseMember {
  readonly firstBlock: number;
  readonly blockCount: number;
}

/** Where in the base's entries a similar block may be, and the entries that a difference to it refers to. */
export interface Likeness {
  readonly reference: number;
  readonly secondReference: number;
  readonly shift: number;
  readonly depth: number;
}

/** The image that is written against: which of its blocks may be referenced again, and which resemble a new one. */
export class BlockBase {
  readonly #reader: BlockReader;
  readonly #usablePacks: readonly boolean[];
  readonly #byDigest = new Map<string, number>();
  readonly #inImage = new Map<string, number>();
  readonly #byHint = new Map<number, number>();

  /** `memberBlocks` is how many of the entries are members' blocks; the others follow. */
  constructor(
    reader: BlockReader,
    {
      entryCount,
      memberBlocks,
      usablePacks,
    }: { entryCount: number; memberBlocks: number; usablePacks: readonly boolean[] },
  ) {
    this.#reader = reader;
    this.#usablePacks = usablePacks;
    for (let index = 0; index < entryCount; index++) {
      const entry = reader.entry(index);
      if (entry.codec === CODEC.zero) continue;
      if (this.#isUsable(entry)) this.#byDigest.set(digestKey(entry.sha256), index);
      if (entry.pack === IN_IMAGE) this.#inImage.set(digestKey(entry.sha256), index);
      if (index >= memberBlocks) continue;
      // A page that begins several blocks does not determine a position.
      this.#byHint.set(entry.hint, this.#byHint.has(entry.hint) ? NO_REFERENCE : index);
    }
  }

  /** The entry of a block with these bytes that a new image may reference. */
  find(sha256: Uint8Array): number | undefined {
    return this.#byDigest.get(digestKey(sha256));
  }

  /** The member's block that begins with a page of this CRC, if there is exactly one. */
  blockBeginningWith(hint: number, { firstBlock, blockCount }: BaseMember): number | undefined {
    const index = this.#byHint.get(hint);
    if (index === undefined || index === NO_REFERENCE) return undefined;
    return index >= firstBlock && index < firstBlock + blockCount ? index - firstBlock : undefined;
  }

  /**
   * The base's stored form of a block with these bytes in the image itself, where others cannot reference it: it is
   * stored again unchanged if everything that it depends on can be referenced, and it still decodes to these bytes.
   */
  findInImage(
    sha256: Uint8Array,
    block: Buffer,
  ): { readonly codec: Codec; readonly likeness: Likeness | undefined; readonly bytes: Buffer } | undefined {
    const index = this.#inImage.get(digestKey(sha256));
    if (index === undefined) return undefined;
    const { codec } = this.#reader.entry(index);
    const likeness = codec === CODEC.difference ? this.#likenessOf(index) : undefined;
    if (codec === CODEC.difference && likeness === undefined) return undefined;
    if (!this.#reader.readDecoded(index).equals(block)) return undefined;
    return { codec, likeness, bytes: this.#reader.readStored(index) };
  }

  /** The content of a member from a position on, which need not be a block boundary; undefined if nothing is usable. */
  likenessAt(member: BaseMember, position: number): Likeness | undefined {
    const block = Math.floor(position / BLOCK_BYTES);
    if (position < 0 || block >= member.blockCount) return undefined;
    const shift = position % BLOCK_BYTES;
    const first = member.firstBlock + block;
    if (shift === 0) return this.#standIn(first);
    const second = block + 1 < member.blockCount ? this.#nameable(first + 1) : NO_REFERENCE;
    const reference = this.#nameable(first);
    return reference === undefined || second === undefined ? undefined : this.#across(reference, second, shift);
  }

  read({ reference, secondReference, shift }: Likeness, sizeBytes: number): Buffer {
    return this.#reader.readAcross(reference, secondReference, shift, sizeBytes);
  }

  /** The approximate stored size of the block on its own: that of the block at the start of its chain. */
  wholeBytes({ reference }: Likeness): number {
    let entry = this.#reader.entry(reference);
    while (entry.codec === CODEC.difference) entry = this.#reader.entry(entry.reference);
    return entry.storedBytes;
  }

  /**
   * The entry of a member's block with exactly these bytes that a new image may reference, if a plain copy of it is on
   * this machine.
   */
  findSame(block: Buffer, { firstBlock, blockCount }: BaseMember, position: number): number | undefined {
    const at = position / BLOCK_BYTES;
    if (!Number.isInteger(at) || at < 0 || at >= blockCount) return undefined;
    const index = firstBlock + at;
    if (!this.#isUsable(this.#reader.entry(index))) return undefined;
    return this.#reader.readCopy(index)?.equals(block) === true ? index : undefined;
  }

  /**
   * The block itself, if it may be referenced and is not at the end of a long chain. Otherwise something that resembles
   * it: the start of its chain, so that the next ones have room again, or the block that it is a difference to.
   */
  #standIn(index: number): Likeness | undefined {
    const entry = this.#reader.entry(index);
    const isUsable = this.#isUsable(entry);
    if (isUsable && entry.depth < LARGEST_DEPTH) return this.#across(index, NO_REFERENCE, 0);
    if (entry.codec !== CODEC.difference) return undefined;
    const root = isUsable ? this.#rootOf(entry) : undefined;
    return root === undefined ? this.#likenessOf(index) : this.#across(root, NO_REFERENCE, 0);
  }

  /** The block, or the block that it is a difference to if it cannot be referenced itself. */
  #nameable(index: number): number | undefined {
    const entry = this.#reader.entry(index);
    if (this.#isUsable(entry)) return index;
    return entry.codec === CODEC.difference && entry.shift === 0 ? entry.reference : undefined;
  }

  /** The reference of a difference. */
  #likenessOf(index: number): Likeness | undefined {
    const { reference, secondReference, shift } = this.#reader.entry(index);
    return this.#across(reference, secondReference, shift);
  }

  #across(reference: number, secondReference: number, shift: number): Likeness | undefined {
    const references = [reference, secondReference].filter((index) => index !== NO_REFERENCE);
    const entries = references.map((index) => this.#reader.entry(index));
    if (!entries.every((entry) => this.#isUsable(entry) && entry.depth < LARGEST_DEPTH)) return undefined;
    if (!references.every((index) => this.#reader.isAtHand(index))) return undefined;
    const depth = Math.max(...entries.map((entry) => entry.depth)) + 1;
    return { reference, secondReference, shift, depth };
  }

  /** The block at the start of a chain without shifts. */
  #rootOf(entry: BlockEntry): number | undefined {
    let root: number | undefined;
    for (let at = entry; at.codec === CODEC.difference; at = this.#reader.entry(root)) {
      if (at.shift !== 0) return undefined;
      root = at.reference;
    }
    return root;
  }

  /** A reference to a difference includes its own references. */
  #isUsable(entry: BlockEntry): boolean {
    const { pack, codec } = entry;
    if (codec === CODEC.zero) return true;
    if (pack === IN_IMAGE || this.#usablePacks[pack] !== true) return false;
    return referencesOf(entry).every((index) => this.#isUsable(this.#reader.entry(index)));
  }
}

function digestKey(sha256: Uint8Array): string {
  return Buffer.from(sha256.buffer, sha256.byteOffset, sha256.byteLength).toString("latin1");
}
