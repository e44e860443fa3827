import { readdir, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";

/** What is kept for later takes at most this share of what would be free without it. */
const LARGEST_SHARE = 1 / 4;
/** A draft that nobody has written to for so long was left by a process that was killed. */
const ABANDONED_MS = 3_600_000;
const DRAFT = /^\.draft-/;

/** One thing that is kept. */
export interface Kept {
  readonly name: string;
  readonly sizeBytes: number;
  readonly usedMs: number;
}

/** Those that must go, the longest unused first, for the rest to stay below the limit and not to fill the disk. */
export async function tooMuch(folder: string, limitBytes: number, kept: readonly Kept[]): Promise<readonly string[]> {
  let totalBytes = kept.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const roomBytes = Math.min(limitBytes, LARGEST_SHARE * ((await freeBytes(folder)) + totalBytes));
  const going: string[] = [];
  for (const { name, sizeBytes } of kept.toSorted((a, b) => a.usedMs - b.usedMs)) {
    if (totalBytes <= roomBytes) break;
    going.push(name);
    totalBytes -= sizeBytes;
  }
  return going;
}

/** Removes what was being written when a process was killed. */
export async function removeAbandonedDrafts(folder: string): Promise<void> {
  await removeAbandoned(folder, DRAFT, ABANDONED_MS);
}

/** Removes what has such a name and has not changed for so long. */
export async function removeAbandoned(folder: string, name: RegExp, afterMs: number): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const each of names.filter((found) => name.test(found))) {
    const path = join(folder, each);
    const changedMs = (await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now();
    if (Date.now() - changedMs > afterMs) await rm(path, { recursive: true, force: true });
  }
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize;
}
