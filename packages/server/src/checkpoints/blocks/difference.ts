import { BLOCK_BYTES } from "./block-table.ts";

export const PAGE_BYTES = 4096;

/** One bit for each page of a block, the first page's the lowest of the first byte. */
const BITMAP_BYTES = BLOCK_BYTES / PAGE_BYTES / 8;
/** The memory limit of a difference. */
export const LARGEST_DIFFERENCE_BYTES = BITMAP_BYTES + BLOCK_BYTES;

/** The pages of a block that differ from another block of its size, as a bit set. */
export function changedPages(block: Buffer, other: Buffer): Uint8Array {
  const bitmap = new Uint8Array(BITMAP_BYTES);
  for (let at = 0, page = 0; at < block.byteLength; at += PAGE_BYTES, page++) {
    const end = Math.min(at + PAGE_BYTES, block.byteLength);
    if (block.compare(other, at, end, at, end) !== 0) bitmap[page >> 3] = (bitmap[page >> 3] ?? 0) | (1 << (page & 7));
  }
  return bitmap;
}

export function hasChanged(changed: Uint8Array, page: number): boolean {
  return ((changed[page >> 3] ?? 0) & (1 << (page & 7))) !== 0;
}

/** A block as its difference to another of its size: the set of differing pages, and these pages XOR the other's. */
export function differenceOf(block: Buffer, other: Buffer, changed: Uint8Array, into: Buffer): Buffer {
  into.set(changed);
  let end = BITMAP_BYTES;
  for (const [from, to] of pageRanges(changed, block.byteLength)) {
    exclusiveOr(block.subarray(from, to), other.subarray(from, to), into.subarray(end, end + to - from));
    end += to - from;
  }
  return into.subarray(0, end);
}

/** The block that {@link differenceOf} was given; undefined if this is not a difference to a block of that size. */
export function applyDifference(difference: Buffer, other: Buffer): Buffer | undefined {
  const changed = difference.subarray(0, BITMAP_BYTES);
  const block = Buffer.allocUnsafeSlow(other.byteLength);
  other.copy(block);
  let at = BITMAP_BYTES;
  for (const [from, to] of pageRanges(changed, block.byteLength)) {
    if (at + to - from > difference.byteLength) return undefined;
    exclusiveOr(difference.subarray(at, at + to - from), other.subarray(from, to), block.subarray(from, to));
    at += to - from;
  }
  return at === difference.byteLength ? block : undefined;
}

/** A bit beyond the block's end is not a page of it. */
function* pageRanges(changed: Uint8Array, blockBytes: number): Generator<readonly [from: number, to: number]> {
  for (let at = 0, page = 0; at < blockBytes; at += PAGE_BYTES, page++) {
    if (hasChanged(changed, page)) yield [at, Math.min(at + PAGE_BYTES, blockBytes)];
  }
}

/** XORs two buffers into `into`, in words of four bytes and the rest in bytes. All three have the same size. */
function exclusiveOr(one: Uint8Array, other: Uint8Array, into: Uint8Array): void {
  const { byteLength } = one;
  const aligned = [one, other, into].every(({ byteOffset }) => byteOffset % 4 === 0);
  const wordCount = aligned ? Math.trunc(byteLength / 4) : 0;
  if (aligned) {
    const left = new Uint32Array(one.buffer, one.byteOffset, wordCount);
    const right = new Uint32Array(other.buffer, other.byteOffset, wordCount);
    const result = new Uint32Array(into.buffer, into.byteOffset, wordCount);
    for (let word = 0; word < wordCount; word++) result[word] = (left[word] ?? 0) ^ (right[word] ?? 0);
  }
  for (let at = wordCount * 4; at < byteLength; at++) into[at] = (one[at] ?? 0) ^ (other[at] ?? 0);
}
