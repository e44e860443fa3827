import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import { type BaseMember, type BlockBase, type Likeness, PAGE_BYTES } from "./block-base.ts";
import { BlockDamagedError } from "./block-reader.ts";
import { BLOCK_BYTES, CODEC, type Codec } from "./block-table.ts";
import { compress, exclusiveOr } from "./difference.ts";

const ZEROS = Buffer.alloc(BLOCK_BYTES);

/** A difference of at most this share of the block is taken without looking for anything better. */
const GOOD_SHARE = 1 / 4;
/** A block that depends on others must save at least this much against one that does not. */
const WORTH_SHARE = 3 / 4;

export type EncodedBlock =
  | { readonly kind: "zero"; readonly rawBytes: number }
  /** The base has it, at this entry. */
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
  readonly bytes: Uint8Array;
}

/** Turns blocks of one member, in order, into what is stored of them. */
export class BlockEncoder {
  readonly #base: BlockBase | undefined;
  readonly #scratch = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  /** How far the content of the base was found to have moved, in bytes; it stays so for long stretches. */
  #moved = 0;

  constructor(base: BlockBase | undefined) {
    this.#base = base;
  }

  /** `position` is where the block begins in its member; `member` what the base has under the member's name. */
  encode(block: Buffer, position: number, member: BaseMember | undefined): EncodedBlock {
    const rawBytes = block.byteLength;
    if (block.equals(ZEROS.subarray(0, rawBytes))) return { kind: "zero", rawBytes };
    const sha256 = hash("sha256", block, "buffer");
    const known = this.#base?.find(sha256);
    if (known !== undefined) return { kind: "known", index: known };
    const described = { kind: "stored", sha256, rawBytes, hint: crc32(block.subarray(0, PAGE_BYTES)) } as const;
    const again = this.#base?.findInImage(sha256);
    if (again !== undefined) return { ...described, ...again };
    const difference = member === undefined ? undefined : this.#difference(block, position, member);
    if (difference !== undefined && difference.bytes.byteLength <= rawBytes * GOOD_SHARE) {
      return { ...described, ...difference, codec: CODEC.difference };
    }
    const plain = compress(block);
    const stored = plain.byteLength < rawBytes ? plain : Buffer.from(block);
    if (difference !== undefined && difference.bytes.byteLength <= stored.byteLength * WORTH_SHARE) {
      return { ...described, ...difference, codec: CODEC.difference };
    }
    const codec = stored === plain ? CODEC.zstd : CODEC.raw;
    return { ...described, codec, likeness: undefined, bytes: stored };
  }

  #difference(block: Buffer, position: number, member: BaseMember): { likeness: Likeness; bytes: Buffer } | undefined {
    const first = this.#differenceTo(block, member, position - this.#moved);
    if (first !== undefined && first.bytes.byteLength <= block.byteLength * GOOD_SHARE) return first;
    const found = this.#whereInBase(block, member);
    if (found === undefined || found === position - this.#moved) return first;
    const second = this.#differenceTo(block, member, found);
    if (second === undefined) return first;
    if (first !== undefined && first.bytes.byteLength <= second.bytes.byteLength) return first;
    this.#moved = position - found;
    return second;
  }

  #differenceTo(
    block: Buffer,
    member: BaseMember,
    position: number,
  ): { likeness: Likeness; bytes: Buffer } | undefined {
    const likeness = this.#base?.likenessAt(member, position);
    if (likeness === undefined || this.#base === undefined) return undefined;
    const into = this.#scratch.subarray(0, block.byteLength);
    try {
      exclusiveOr(block, this.#base.read(likeness, block.byteLength), into);
    } catch (error) {
      // What is damaged, or has gone from this machine meanwhile, is no base for anything.
      if (error instanceof BlockDamagedError) return undefined;
      throw error;
    }
    return { likeness, bytes: compress(into) };
  }

  /** Some page of this block begins a block of the base, if its content has moved by whole pages. */
  #whereInBase(block: Buffer, member: BaseMember): number | undefined {
    for (let at = 0; at + PAGE_BYTES <= block.byteLength; at += PAGE_BYTES) {
      const found = this.#base?.blockBeginningWith(crc32(block.subarray(at, at + PAGE_BYTES)), member);
      if (found !== undefined) return found * BLOCK_BYTES - at;
    }
    return undefined;
  }
}
