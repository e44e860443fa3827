import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { undefinedIf } from "../support/errno.ts";
import { acquireFileLock } from "../support/file-lock.ts";
import type { Holders } from "./holders.ts";
import type { ImageFolders } from "./image-folders.ts";
import type { ImageEntry, ImageIndex } from "./image-index.ts";
import { readLayerRecord } from "./layers/layer-record.ts";

export interface Collected {
  /** Digests of the images that were removed. */
  readonly removed: readonly string[];
  readonly freedBytes: number;
}

/** Parts of downloads that nobody continued. */
const STALE_MS = 24 * 3_600_000;

/**
 * Removes the least recently used images until all layers together have at most `maxBytes`, then layers and root
 * filesystems that no image needs. Images that a living process holds stay.
 */
export async function collectImages(
  index: ImageIndex,
  folders: ImageFolders,
  holders: Holders,
  maxBytes: number,
): Promise<Collected> {
  const sizes = await layerSizes(folders);
  // An id that does not live now never will.
  const living = await holders.living();
  const removed = await index.change((images) => {
    dropDead(images, living);
    return chooseOld(images, sizes, maxBytes);
  });
  const freedBytes = await removeUnneeded(index, folders, sizes);
  await removeStale(folders);
  return { removed, freedBytes };
}

/** Releases the images that ended processes held, and forgets pulls that they began. */
function dropDead(images: Map<string, ImageEntry>, living: ReadonlySet<string>): void {
  for (const [digest, entry] of images) {
    const heldBy = entry.held_by.filter((id) => living.has(id));
    if (!entry.ready && heldBy.length === 0) images.delete(digest);
    else if (heldBy.length < entry.held_by.length) images.set(digest, { ...entry, held_by: heldBy });
  }
}

function chooseOld(images: Map<string, ImageEntry>, sizes: ReadonlyMap<string, number>, maxBytes: number): string[] {
  const removed: string[] = [];
  const total = (): number => {
    const needed = new Set([...images.values()].flatMap(({ diff_ids }) => diff_ids));
    return [...needed].reduce((sum, diffId) => sum + (sizes.get(diffId) ?? 0), 0);
  };
  const byUse = [...images].toSorted(([, a], [, b]) => a.last_used_at.localeCompare(b.last_used_at));
  const newest = byUse.at(-1)?.[0];
  for (const [digest, { held_by }] of byUse) {
    // The newest may be larger than the limit and still be wanted; pruning removes all.
    if (maxBytes > 0 && (digest === newest || total() <= maxBytes)) break;
    if (held_by.length > 0) continue;
    images.delete(digest);
    removed.push(digest);
  }
  return removed;
}

async function layerSizes(folders: ImageFolders): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  for (const name of await digestsIn(folders.layers)) {
    const record = await readLayerRecord(folders.layer(name));
    if (record !== undefined) sizes.set(record.diff_id, record.bytes);
  }
  return sizes;
}

/** Under its lock, each is looked up again: a pull that needs it registers before it looks. */
async function removeUnneeded(
  index: ImageIndex,
  folders: ImageFolders,
  sizes: ReadonlyMap<string, number>,
): Promise<number> {
  const needed = async (digest: string): Promise<boolean> => {
    const images = await index.read();
    return images.has(digest) || [...images.values()].some(({ diff_ids }) => diff_ids.includes(digest));
  };
  let freedBytes = 0;
  for (const folder of [folders.roots, folders.layers]) {
    for (const name of await digestsIn(folder)) {
      const digest = `sha256:${name}`;
      if (await needed(digest)) continue;
      const lock = await acquireFileLock(folders.lock(digest));
      if (lock === undefined) continue;
      try {
        if (await needed(digest)) continue;
        await rm(join(folder, name), { recursive: true, force: true });
        if (folder === folders.layers) freedBytes += sizes.get(digest) ?? 0;
        await rm(folders.lock(digest), { force: true });
      } finally {
        await lock.release();
      }
    }
  }
  return freedBytes;
}

async function digestsIn(folder: string): Promise<string[]> {
  const names = (await readdir(folder).catch(undefinedIf("ENOENT"))) ?? [];
  return names.filter((name) => /^[0-9a-f]{64}$/.test(name));
}

/** Unfinished folders of killed processes, and old parts of downloads. */
async function removeStale(folders: ImageFolders): Promise<void> {
  for (const folder of [folders.roots, folders.layers, folders.downloads, folders.imports]) {
    for (const name of (await readdir(folder).catch(undefinedIf("ENOENT"))) ?? []) {
      if (/^[0-9a-f]{64}$/.test(name) && folder !== folders.downloads) continue;
      const path = join(folder, name);
      const info = await stat(path).catch(undefinedIf("ENOENT"));
      if (info !== undefined && Date.now() - info.mtimeMs > STALE_MS) await rm(path, { recursive: true, force: true });
    }
  }
}
