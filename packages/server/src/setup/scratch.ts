import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

const PREFIX = "scratch-";

/** A temporary directory for downloads and builds, on the cache's own volume. */
export async function inScratchDirectory<T>(
  cacheDirectory: string,
  work: (directory: string) => Promise<T>,
): Promise<T> {
  await mkdir(cacheDirectory, { recursive: true, mode: 0o700 });
  const directory = await mkdtemp(join(cacheDirectory, PREFIX));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Removes leftovers of a killed set-up. Only under the set-up lock, where every scratch directory is abandoned. */
export async function removeStaleScratch(cacheDirectory: string): Promise<void> {
  const names = await readdir(cacheDirectory).catch(() => []);
  for (const name of names.filter((entry) => entry.startsWith(PREFIX))) {
    await rm(join(cacheDirectory, name), { recursive: true, force: true });
  }
}
