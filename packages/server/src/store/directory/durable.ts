import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { syncPath } from "../../support/replace-file.ts";

/**
 * When what was written is safe from a power failure. Behind the answer is for what only processes of this machine use, and
 * what is lost with it in any case: it saves milliseconds, and a write that was answered outlives its process all the same.
 */
export type Syncs = "before the answer" | "behind the answer";

/** A flush of the disk holds up whatever is written to it meanwhile. */
const SYNC_AFTER_MS = 1_000;

const unsynced = new Set<string>();

/** Makes a new file durable a moment later. File systems with a journal do the same for its name and its new folders. */
export function syncLater(path: string): void {
  if (unsynced.size === 0) setTimeout(() => void syncAll(), SYNC_AFTER_MS).unref();
  unsynced.add(path);
}

/** One after the other: what the first one flushes, the others find flushed. */
async function syncAll(): Promise<void> {
  const paths = [...unsynced];
  unsynced.clear();
  for (const path of paths) {
    await syncPath(path).catch(() => {
      // It has been removed again.
    });
  }
}

/** In a store nobody but its owner sees anything. */
export const FOLDER_MODE = 0o700;

/** Makes a folder and its missing parents, durably. */
export async function makeFolder(folder: string): Promise<void> {
  const firstCreated = await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  if (firstCreated === undefined) return;
  const stopAt = dirname(firstCreated);
  for (let parent = dirname(folder); ; parent = dirname(parent)) {
    await syncPath(parent);
    if (parent === stopAt || parent === dirname(parent)) return;
  }
}
