import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

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
