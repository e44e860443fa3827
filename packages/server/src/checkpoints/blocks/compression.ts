import { Readable } from "node:stream";
import { constants, createZstdDecompress, zstdCompressSync, zstdDecompressSync } from "node:zlib";
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

/** Fills memory with what the bytes give, without holding others up. False when they are no frame of just that size. */
export async function decompressInto(into: Buffer, bytes: Uint8Array): Promise<boolean> {
  let at = 0;
  try {
    for await (const chunk of Readable.from([bytes]).pipe(createZstdDecompress({ chunkSize: BLOCK_BYTES }))) {
      const plain = chunk as Buffer;
      if (at + plain.byteLength > into.byteLength) return false;
      into.set(plain, at);
      at += plain.byteLength;
    }
  } catch {
    return false;
  }
  return at === into.byteLength;
}
