import { type FileHandle, open } from "node:fs/promises";

/** Small enough that hashing one takes well under 10 ms of the event loop, large enough to keep the disk busy. */
const CHUNK_BYTES = 1024 * 1024;
const CHUNKS_AHEAD = 3;

/**
 * A file's bytes in order, read a few chunks ahead of the consumer, so that reading overlaps with what it does with them.
 * The memory of a chunk is used again: it is the consumer's until two more chunks were asked for, so that one may be
 * written while the next is hashed.
 */
export async function* readAhead(path: string, ring: ReadRing): AsyncGenerator<Uint8Array> {
  const handle = await open(path, "r");
  const underWay: Promise<Uint8Array>[] = [];
  try {
    const { size } = await handle.stat();
    let started = 0;
    const startOne = (): void => {
      if (started >= size) return;
      const read = readExactly(handle, ring.next(), started, Math.min(CHUNK_BYTES, size - started));
      // Met when its turn comes.
      read.catch(() => undefined);
      underWay.push(read);
      started += CHUNK_BYTES;
    };
    for (let ahead = 0; ahead < CHUNKS_AHEAD; ahead++) startOne();
    for (let chunk = underWay.shift(); chunk !== undefined; chunk = underWay.shift()) {
      startOne();
      yield await chunk;
    }
  } finally {
    await Promise.allSettled(underWay);
    await handle.close();
  }
}

/** The memory of one {@link readAhead} after the other: the chunks under way, and the two that the consumer has. */
export class ReadRing {
  readonly #buffers = Array.from({ length: CHUNKS_AHEAD + 2 }, () => Buffer.allocUnsafeSlow(CHUNK_BYTES));
  #turn = 0;

  next(): Buffer {
    const buffer = this.#buffers[this.#turn++ % this.#buffers.length];
    if (buffer === undefined) throw new RangeError("The ring has no buffers.");
    return buffer;
  }
}

/** Asks for the next item while the consumer still works on the one before. */
export async function* oneAhead<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = source.next();
  try {
    for (;;) {
      const item = await next;
      if (item.done === true) return;
      next = source.next();
      // Met when its turn comes.
      next.catch(() => undefined);
      yield item.value;
    }
  } finally {
    await next.catch(() => undefined);
    await source.return(undefined);
  }
}

async function readExactly(handle: FileHandle, buffer: Buffer, position: number, wanted: number): Promise<Uint8Array> {
  const { bytesRead } = await handle.read(buffer, 0, wanted, position);
  if (bytesRead !== wanted)
    throw new Error(`A file became shorter while it was read, at byte ${position + bytesRead}.`);
  return buffer.subarray(0, bytesRead);
}
