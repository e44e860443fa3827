import { Readable } from "node:stream";
import { constants, createZstdDecompress, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { BLOCK_BYTES } from "./block-table.ts";

/** Large enough that a block is not split into many pieces, small enough for small differences. */
const FAST = { chunkSize: 64 * 1024, params: { [constants.ZSTD_c_compressionLevel]: 1 } };

export function compress(bytes: Uint8Array): Buffer {
  return zstdCompressSync(bytes, FAST);
}

/** Undefined if the bytes are not a frame, or one that is too large. */
export function decompress(bytes: Uint8Array, limitBytes: number): Buffer | undefined {
  try {
    const chunkSize = Math.min(Math.max(limitBytes, 64), BLOCK_BYTES);
    return zstdDecompressSync(bytes, { chunkSize, maxOutputLength: Math.max(limitBytes, 1) });
  } catch {
    return undefined;
  }
}

/** Decompresses into memory without blocking others. False if the bytes are not a frame of exactly that size. */
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
