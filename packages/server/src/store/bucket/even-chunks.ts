const CHUNK_BYTES = 1024 * 1024;

/**
 * The same bytes in chunks of 1 MiB, which is what readers of the store expect, from the small ones that a network gives.
 * With `reuseMemory` a chunk's memory is used again for the next but one.
 */
export async function* evenChunks(
  source: AsyncIterable<Uint8Array>,
  reuseMemory: boolean,
): AsyncGenerator<Uint8Array, void, undefined> {
  let memory: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let spare: Buffer | undefined;
  let filled = 0;
  for await (const piece of source) {
    for (let taken = 0; taken < piece.byteLength;) {
      const some = piece.subarray(taken, taken + CHUNK_BYTES - filled);
      memory.set(some, filled);
      filled += some.byteLength;
      taken += some.byteLength;
      if (filled < CHUNK_BYTES) continue;
      yield memory;
      [memory, spare] = [(reuseMemory ? spare : undefined) ?? Buffer.allocUnsafeSlow(CHUNK_BYTES), memory];
      filled = 0;
    }
  }
  if (filled > 0) yield memory.subarray(0, filled);
}
