import type { Chunks } from "../store.ts";

export interface Part {
  readonly bytes: Uint8Array;
  readonly last: boolean;
}

const FIRST_BYTES = 64 * 1024;

/**
 * Copies chunks into parts of one size, so that the producer may reuse its memory. There is always a last part; it is
 * empty only if there were no bytes.
 */
export async function* parts(
  chunks: Chunks,
  partBytes: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Part, void, undefined> {
  let memory = Buffer.alloc(0);
  let filled = 0;
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    for (let taken = 0; taken < chunk.byteLength;) {
      if (filled === partBytes) {
        yield { bytes: memory, last: false };
        memory = Buffer.allocUnsafeSlow(partBytes);
        filled = 0;
      }
      const piece = chunk.subarray(taken, taken + partBytes - filled);
      memory = withRoom(memory, filled, filled + piece.byteLength, partBytes);
      memory.set(piece, filled);
      filled += piece.byteLength;
      taken += piece.byteLength;
    }
  }
  signal?.throwIfAborted();
  yield { bytes: memory.subarray(0, filled), last: true };
}

/** Doubles, so that a small blob does not cost a whole part. */
function withRoom(memory: Buffer<ArrayBuffer>, filled: number, wanted: number, partBytes: number): Buffer<ArrayBuffer> {
  if (wanted <= memory.byteLength) return memory;
  const larger = Buffer.allocUnsafeSlow(Math.min(partBytes, Math.max(FIRST_BYTES, wanted, memory.byteLength * 2)));
  memory.copy(larger, 0, 0, filled);
  return larger;
}
