import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { syncPath } from "../../support/replace-file.ts";

/**
 * When written data is safe from a power failure. `behind the answer` is for data that only processes of this machine
 * use and that is lost with it in any case: it saves milliseconds, and an answered write still survives its process.
 */
export type Syncs = "before the answer" | "behind the answer";

/** A flush of the disk delays other writes to it. */
const SYNC_AFTER_MS = 1_000;

const unsynced = new Set<string>();

/** Makes a new file durable a moment later. Journaling file systems do the same for its name and its new folders. */
export function syncLater(path: string): void {
  if (unsynced.size === 0) setTimeout(() => void syncAll(), SYNC_AFTER_MS).unref();
  unsynced.add(path);
}

/** One after the other: the first one flushes for the others. */
async function syncAll(): Promise<void> {
  const paths = [...unsynced];
  unsynced.clear();
  for (const path of paths) {
    await syncPath(path).catch(() => {
      // It was removed again.
    });
  }
}

/** Only the owner can access a store. */
export const FOLDER_MODE = 0o700;

/** Creates a folder and its missing parents, durably. */
export async function makeFolder(folder: string): Promise<void> {
  const firstCreated = await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  if (firstCreated === undefined) return;
  const stopAt = dirname(firstCreated);
  for (let parent = dirname(folder); ; parent = dirname(parent)) {
    await syncPath(parent);
    if (parent === stopAt || parent === dirname(parent)) return;
  }
}
