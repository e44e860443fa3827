import { randomUUID } from "node:crypto";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";

/** An engine writes its image in large pieces, for which the kernel allocates its largest pages; so does this. */
const PIECE_BYTES = 4 * 1024 * 1024;

/**
 * Makes the kernel hold that much free memory. A virtual machine that returns free memory to its host holds none after
 * two seconds, and pays for each page that it takes again: a large file written right after another was removed does
 * not pay, a later one does.
 */
export async function haveMemoryAtHand(folder: string, megabytes: number): Promise<void> {
  const path = join(folder, `memory-${randomUUID()}`);
  const piece = Buffer.alloc(PIECE_BYTES, 1);
  const file = await open(path, "wx");
  try {
    for (let written = 0; written < megabytes * 1024 ** 2; written += PIECE_BYTES) await file.write(piece);
  } finally {
    await file.close();
    await rm(path);
  }
}
