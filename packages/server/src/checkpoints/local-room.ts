import { readdir, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";

/** The cache uses at most this share of the space that would be free without it. */
const LARGEST_SHARE = 1 / 4;
/** A draft that was not written to for this long was left by a killed process. */
const ABANDONED_MS = 3_600_000;
const DRAFT = /^\.draft-/;

/** One cached item. */
export interface Kept {
  readonly name: string;
  readonly sizeBytes: number;
  readonly usedMs: number;
}

/** The least recently used items that must be removed to stay below the limit and not fill the disk. */
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

/** Removes drafts of killed processes. */
export async function removeAbandonedDrafts(folder: string): Promise<void> {
  await removeAbandoned(folder, DRAFT, ABANDONED_MS);
}

/** Removes files with such a name that have not changed for this long. */
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
