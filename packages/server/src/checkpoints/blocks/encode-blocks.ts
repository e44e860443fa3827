import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { BaseMember, BlockBase, Likeness } from "./block-base.ts";
import { checkOf } from "./block-check.ts";
import { BLOCK_BYTES, CODEC, type Codec } from "./block-table.ts";
import { compress } from "./compression.ts";
import { changedPages, differenceOf, hasChanged, LARGEST_DIFFERENCE_BYTES, PAGE_BYTES } from "./difference.ts";

const ZEROS = Buffer.alloc(BLOCK_BYTES);

/** A difference of at most this share of the block is used without trying to compress the block itself, */
const GOOD_SHARE = 1 / 64;
/** and so is one of at most this share of the stored size of its reference. */
const GOOD_SHARE_OF_WHOLE = 1 / 4;
/** With this many equal pages at one position, no other position is tried. */
const CLOSE_SHARE = 1 / 4;
const WORD_WEIGHT = 1 / 1000;
/** With less in common a difference is not worth trying. */
const SMALLEST_SHARE = WORD_WEIGHT / 4;
const MOST_PLACES = 4;
/** Out of the 64 pages of a block. */
const SAMPLED_PAGES = 8;
const INCOMPRESSIBLE_SHARE = 0.98;
/** A dependent block must save at least this much compared to an independent one. */
const WORTH_SHARE = 3 / 4;

export type EncodedBlock =
  | { readonly kind: "zero"; readonly rawBytes: number }
  /** The base has the block, at this entry. */
  | { readonly kind: "known"; readonly index: number }
  | StoredBlock;

export interface StoredBlock {
  readonly kind: "stored";
  readonly sha256: Uint8Array;
  readonly rawBytes: number;
  readonly codec: Codec;
  /** Entries of the base. */
  readonly likeness: Likeness | undefined;
  readonly hint: number;
  readonly check: bigint;
  readonly bytes: Uint8Array;
}

/** Encodes blocks of one member, in order. */
export class BlockEncoder {
  readonly #base: BlockBase | undefined;
  readonly #scratch = Buffer.allocUnsafeSlow(LARGEST_DIFFERENCE_BYTES);
  /** How far the content of the base was found to have shifted, in bytes; this is constant over long stretches. */
  #moved = 0;

  constructor(base: BlockBase | undefined) {
    this.#base = base;
  }

  /** `position` is where the block begins in its member; `member` is the base's member of the same name. */
  encode(block: Buffer, position: number, member: BaseMember | undefined): EncodedBlock {
    const rawBytes = block.byteLength;
    if (block.equals(ZEROS.subarray(0, rawBytes))) return { kind: "zero", rawBytes };
    const same = member && unlessUnreadable(() => this.#base?.findSame(block, member, position - this.#moved));
    if (same !== undefined) return { kind: "known", index: same };
    const sha256 = hash("sha256", block, "buffer");
    const known = this.#base?.find(sha256);
    if (known !== undefined) return { kind: "known", index: known };
    const hint = crc32(block.subarray(0, PAGE_BYTES));
    const described = { kind: "stored", sha256, rawBytes, hint, check: checkOf(block) } as const;
    const again = unlessUnreadable(() => this.#base?.findInImage(sha256, block));
    if (again !== undefined) return { ...described, ...again };
    const difference = member === undefined ? undefined : this.#difference(block, position, member);
    const asDifference = difference && { ...described, ...difference.stored, codec: CODEC.difference };
    if (asDifference !== undefined && difference?.isGood === true) return asDifference;
    const plain = this.#seemsCompressible(block) ? compress(block) : block;
    const isSmaller = plain.byteLength < rawBytes;
    const worthBytes = plain.byteLength * WORTH_SHARE;
    if (asDifference !== undefined && asDifference.bytes.byteLength <= worthBytes) return asDifference;
    // The block's own memory is reused for the next one.
    const bytes = isSmaller ? plain : Buffer.from(block);
    return { ...described, codec: isSmaller ? CODEC.zstd : CODEC.raw, likeness: undefined, bytes };
  }

  /** Samples some pages: random, encrypted or compressed data is not worth the time for the whole block. */
  #seemsCompressible(block: Buffer): boolean {
    if (block.byteLength < BLOCK_BYTES) return true;
    for (let sample = 0; sample < SAMPLED_PAGES; sample++) {
      // At an interval that content is unlikely to have as well.
      const at = sample * (SAMPLED_PAGES + 1) * PAGE_BYTES;
      block.copy(this.#scratch, sample * PAGE_BYTES, at, at + PAGE_BYTES);
    }
    const sampledBytes = SAMPLED_PAGES * PAGE_BYTES;
    return compress(this.#scratch.subarray(0, sampledBytes)).byteLength < sampledBytes * INCOMPRESSIBLE_SHARE;
  }

  /** The difference to the most similar content of the base: at the last shift, or where one of its pages is now. */
  #difference(block: Buffer, position: number, member: BaseMember): Difference | undefined {
    let best = this.#candidate(block, member, position - this.#moved);
    if (best === undefined || best.alike < CLOSE_SHARE) {
      for (const found of this.#placesInBase(block, member)) {
        const candidate = this.#candidate(block, member, found);
        if (candidate !== undefined && candidate.alike > (best?.alike ?? 0)) best = candidate;
        if (best !== undefined && best.alike >= CLOSE_SHARE) break;
      }
    }
    if (best === undefined || best.alike < SMALLEST_SHARE) return undefined;
    this.#moved = position - best.position;
    const { likeness } = best;
    const wholeBytes = this.#base?.wholeBytes(likeness) ?? 0;
    const goodBytes = Math.max(block.byteLength * GOOD_SHARE, wholeBytes * GOOD_SHARE_OF_WHOLE);
    const bytes = compress(differenceOf(block, best.bytes, best.changed, this.#scratch));
    return { stored: { likeness, bytes }, isGood: bytes.byteLength <= goodBytes };
  }

  #candidate(block: Buffer, member: BaseMember, position: number): Candidate | undefined {
    const likeness = this.#base?.likenessAt(member, position);
    if (likeness === undefined || this.#base === undefined) return undefined;
    const bytes = unlessUnreadable(() => this.#base?.read(likeness, block.byteLength));
    if (bytes === undefined) return undefined;
    const changed = changedPages(block, bytes);
    return { position, likeness, bytes, changed, alike: shareAlike(block, bytes, changed) };
  }

  /** If content has shifted by whole pages, some page of this block begins a block of the base. */
  *#placesInBase(block: Buffer, member: BaseMember): Generator<number> {
    const tried = new Set<number>();
    for (let at = 0; at + PAGE_BYTES <= block.byteLength && tried.size < MOST_PLACES; at += PAGE_BYTES) {
      const found = this.#base?.blockBeginningWith(crc32(block.subarray(at, at + PAGE_BYTES)), member);
      const place = found === undefined ? undefined : found * BLOCK_BYTES - at;
      if (place === undefined || tried.has(place)) continue;
      tried.add(place);
      yield place;
    }
  }
}

/** A damaged, missing or unreadable block is not used as a base: the new block is complete in memory. */
function unlessUnreadable<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

interface Difference {
  readonly stored: { readonly likeness: Likeness; readonly bytes: Buffer };
  /** Used whatever the block itself would need. */
  readonly isGood: boolean;
}

/** Content of the base that a block may be a difference to. */
interface Candidate {
  readonly position: number;
  readonly likeness: Likeness;
  readonly bytes: Buffer;
  readonly changed: Uint8Array;
  readonly alike: number;
}

/**
 * How much of a block equals another at the same position: whole pages first, because single words of uniform content
 * also match at wrong positions; words decide only if no page is unchanged.
 */
function shareAlike(block: Buffer, other: Buffer, changed: Uint8Array): number {
  let pages = 0;
  let words = 0;
  for (let at = 0, page = 0; at < block.byteLength; at += PAGE_BYTES, page++) {
    const end = Math.min(at + PAGE_BYTES, block.byteLength);
    if (!hasChanged(changed, page)) pages += 1;
    // One word of each page, at a different offset in each.
    const word = Math.min(at + ((page * 20) % (PAGE_BYTES - 4)), Math.max(0, end - 4));
    if (end - at >= 4 && block.readInt32LE(word) === other.readInt32LE(word)) words += 1;
  }
  const count = Math.ceil(block.byteLength / PAGE_BYTES);
  return pages / count + (words / count) * WORD_WEIGHT;
}
