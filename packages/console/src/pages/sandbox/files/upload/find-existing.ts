import { list } from "../file-calls.ts";
import { joinPath, parentOf } from "../paths.ts";
import type { UploadItem } from "./gather.ts";

/** The files that would replace something. Only existing folders are read. */
export async function findExisting(
  sandboxId: string,
  target: string,
  items: readonly UploadItem[],
): Promise<ReadonlySet<UploadItem>> {
  /** The contents of each folder: whether a name is a folder. Undefined: it does not exist. */
  const folders = new Map<string, Promise<ReadonlyMap<string, boolean> | undefined>>();
  const holds = (folder: string): Promise<ReadonlyMap<string, boolean> | undefined> => {
    const known = folders.get(folder) ?? look(folder);
    folders.set(folder, known);
    return known;
  };
  const look = async (folder: string): Promise<ReadonlyMap<string, boolean> | undefined> => {
    if (folder !== target) {
      const above = await holds(parentOf(folder));
      if (above?.get(folder.slice(folder.lastIndexOf("/") + 1)) !== true) return undefined;
    }
    const entries = await list(sandboxId, folder);
    return new Map(entries.map(({ name, kind }) => [name, kind === "folder"]));
  };
  const existing = new Set<UploadItem>();
  for (const item of items) {
    if (item.file === undefined) continue;
    const path = joinPath(target, item.path);
    const around = await holds(parentOf(path));
    if (around?.has(path.slice(path.lastIndexOf("/") + 1)) === true) existing.add(item);
  }
  return existing;
}
