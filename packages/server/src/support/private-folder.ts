import { chmod, mkdir, stat } from "node:fs/promises";
import { hasCode } from "./errno.ts";

const PRIVATE = 0o700;
const STICKY = 0o1000;

/** Creates a folder, or uses an existing one, that only its owner can access. */
export async function makePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: PRIVATE });
  await closeFolder(folder);
}

/**
 * Removes the access of others from a folder, and so from everything in it. A shared folder such as `/tmp` is not
 * changed, nor is one of another user, which only that user can close.
 */
export async function closeFolder(folder: string): Promise<void> {
  try {
    const { mode } = await stat(folder);
    if ((mode & STICKY) === 0 && (mode & 0o077) !== 0) await chmod(folder, PRIVATE);
  } catch (error) {
    if (!hasCode(error, "ENOENT", "EPERM", "EROFS")) throw error;
  }
}
