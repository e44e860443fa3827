import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { BLOCK_BYTES } from "./block-table.ts";

/** Large enough that a block is not handed out in many pieces, small enough that the little that a difference needs costs little. */
const FAST = { chunkSize: 64 * 1024, params: { [constants.ZSTD_c_compressionLevel]: 1 } };

export function compress(bytes: Uint8Array): Buffer {
  return zstdCompressSync(bytes, FAST);
}

/** Undefined when the bytes are no frame, or one of more than that. */
export function decompress(bytes: Uint8Array, limitBytes: number): Buffer | undefined {
  try {
    const chunkSize = Math.min(Math.max(limitBytes, 64), BLOCK_BYTES);
    return zstdDecompressSync(bytes, { chunkSize, maxOutputLength: Math.max(limitBytes, 1) });
  } catch {
    return undefined;
  }
}
