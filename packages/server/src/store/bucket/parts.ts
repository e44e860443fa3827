import type { Chunks } from "../store.ts";
import { PART_BYTES } from "./bucket-api.ts";

export interface Part {
  readonly bytes: Uint8Array;
  readonly last: boolean;
}

const FIRST_BYTES = 64 * 1024;

/**
 * Copies chunks into parts of PART_BYTES, so that the producer may reuse its memory. There is always a last part; it is
 * empty only when there were no bytes at all.
 */
export async function* parts(chunks: Chunks, signal: AbortSignal | undefined): AsyncGenerator<Part, void, undefined> {
  let memory = Buffer.alloc(0);
  let filled = 0;
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    for (let taken = 0; taken < chunk.byteLength;) {
      if (filled === PART_BYTES) {
        yield { bytes: memory, last: false };
        memory = Buffer.allocUnsafeSlow(PART_BYTES);
        filled = 0;
      }
      const piece = chunk.subarray(taken, taken + PART_BYTES - filled);
      memory = withRoom(memory, filled, filled + piece.byteLength);
      memory.set(piece, filled);
      filled += piece.byteLength;
      taken += piece.byteLength;
    }
  }
  signal?.throwIfAborted();
  yield { bytes: memory.subarray(0, filled), last: true };
}

/** Doubles, so that a small blob does not cost a whole part. */
function withRoom(memory: Buffer<ArrayBuffer>, filled: number, wanted: number): Buffer<ArrayBuffer> {
  if (wanted <= memory.byteLength) return memory;
  const larger = Buffer.allocUnsafeSlow(Math.min(PART_BYTES, Math.max(FIRST_BYTES, wanted, memory.byteLength * 2)));
  memory.copy(larger, 0, 0, filled);
  return larger;
}
