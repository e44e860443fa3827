import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * When what was written is safe from a power failure. Behind the answer is for what only processes of this machine use, and
 * what is lost with it in any case: it saves milliseconds, and a write that was answered outlives its process all the same.
 */
export type Syncs = "before the answer" | "behind the answer";

/** Makes a new file durable, with its name and those of the two folders that it may be the first file in. */
export async function syncWithParents(path: string): Promise<void> {
  await syncFolder(path);
  await syncFolder(dirname(path));
  await syncFolder(dirname(dirname(path)));
  await syncFolder(dirname(dirname(dirname(path))));
}

/** Makes the names in a folder durable: without it a power failure may undo a finished link or rename. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes a folder and its missing parents, durably. */
export async function makeFolder(folder: string): Promise<void> {
  const firstCreated = await mkdir(folder, { recursive: true });
  if (firstCreated === undefined) return;
  const stopAt = dirname(firstCreated);
  for (let parent = dirname(folder); ; parent = dirname(parent)) {
    await syncFolder(parent);
    if (parent === stopAt || parent === dirname(parent)) return;
  }
}
