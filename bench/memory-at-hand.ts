import { randomUUID } from "node:crypto";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";

/** An engine writes its image in large pieces, for which the kernel takes memory in its largest pieces; so does this. */
const PIECE_BYTES = 4 * 1024 * 1024;

/**
 * The kernel has that much free memory that its machine really holds. A virtual machine that gives free memory back to
 * its host holds none after two seconds, and pays for each page that it takes again: whoever writes a large file right
 * after another one has gone does not, and whoever writes it later does.
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
