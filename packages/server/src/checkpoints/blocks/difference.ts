import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { BLOCK_BYTES } from "./block-table.ts";

/** Large enough that a block is not handed out in many pieces, small enough that the little that a difference needs costs little. */
const FAST = { chunkSize: 64 * 1024, params: { [constants.ZSTD_c_compressionLevel]: 1 } };

export function compress(bytes: Uint8Array): Buffer {
  return zstdCompressSync(bytes, FAST);
}

/** Undefined when the bytes are no frame, or one of more than a block. */
export function decompress(bytes: Uint8Array): Buffer | undefined {
  return decompressWhole(bytes, BLOCK_BYTES);
}

/** Undefined when the bytes are no frame, or one of more than that. */
export function decompressWhole(bytes: Uint8Array, limitBytes: number): Buffer | undefined {
  try {
    const chunkSize = Math.min(Math.max(limitBytes, 64), BLOCK_BYTES);
    return zstdDecompressSync(bytes, { chunkSize, maxOutputLength: Math.max(limitBytes, 1) });
  } catch {
    return undefined;
  }
}

/**
 * Block XOR reference, into `into`, in words of four bytes and what is left in bytes. All three are as long as the block.
 * Applied to its own result it gives the block again.
 */
export function exclusiveOr(block: Uint8Array, reference: Uint8Array, into: Uint8Array): void {
  const { byteLength } = block;
  const aligned = [block, reference, into].every(({ byteOffset }) => byteOffset % 4 === 0);
  const wordCount = aligned ? Math.trunc(byteLength / 4) : 0;
  const left = new Uint32Array(block.buffer, block.byteOffset, wordCount);
  const right = new Uint32Array(reference.buffer, reference.byteOffset, wordCount);
  const result = new Uint32Array(into.buffer, into.byteOffset, wordCount);
  for (let word = 0; word < wordCount; word++) result[word] = (left[word] ?? 0) ^ (right[word] ?? 0);
  for (let at = wordCount * 4; at < byteLength; at++) into[at] = (block[at] ?? 0) ^ (reference[at] ?? 0);
}
