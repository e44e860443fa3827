import { mkdir, readdir, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { hasCode, undefinedIf } from "../../support/errno.ts";
import { syncPath } from "../../support/replace-file.ts";
import { isKey } from "../keys.ts";
import type { NamePage } from "../store.ts";
import { FOLDER_MODE } from "./durable.ts";

/** Others may remove a folder as empty while a name is put into it. */
const ATTEMPTS = 8;

/** Empty blobs on a directory. A folder without names is removed. */
export class DirectoryNames {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async list(folder: string, { after, limit }: NamePage): Promise<readonly string[]> {
    const entries = await readdir(join(this.#root, folder), { withFileTypes: true }).catch(
      undefinedIf("ENOENT", "ENOTDIR"),
    );
    const names = (entries ?? []).flatMap((entry) => (entry.isFile() && isKey(entry.name) ? [entry.name] : []));
    // All characters of keys are ASCII, so that this is the order of their bytes.
    return (after === undefined ? names : names.filter((name) => name > after)).toSorted().slice(0, limit);
  }

  /** Syncs at the same time share one flush of the journal. */
  async add(keys: readonly string[]): Promise<void> {
    const made = await Promise.all(keys.map(async (key) => await this.#create(key)));
    const folders = new Set([...keys.map(dirname), ...made.flat()]);
    await Promise.all([...folders].map(async (folder) => await syncPath(join(this.#root, folder))));
  }

  async remove(keys: readonly string[]): Promise<void> {
    await Promise.all(keys.map(async (key) => await rm(join(this.#root, key), { force: true })));
    for (const folder of new Set(keys.map(dirname))) {
      await rmdir(join(this.#root, folder)).catch(undefinedIf("ENOTEMPTY", "EEXIST", "ENOENT", "EBUSY"));
    }
  }

  /** Returns the folders that got a new folder. */
  async #create(key: string): Promise<readonly string[]> {
    const changed = new Set<string>();
    for (let attempt = 1; ; attempt++) {
      try {
        await writeFile(join(this.#root, key), "", { flag: "a", mode: 0o600 });
        return [...changed];
      } catch (error) {
        if (!hasCode(error, "ENOENT") || attempt === ATTEMPTS) throw error;
      }
      for (const folder of await this.#makeFolders(dirname(key))) changed.add(folder);
    }
  }

  /** Never the root: if that is missing, the store has disappeared. */
  async #makeFolders(folder: string): Promise<readonly string[]> {
    const segments = folder.split("/");
    const parents: string[] = [];
    for (let depth = 1; depth <= segments.length; depth++) {
      const path = segments.slice(0, depth).join("/");
      await mkdir(join(this.#root, path), { mode: FOLDER_MODE }).catch(undefinedIf("EEXIST"));
      parents.push(dirname(path));
    }
    return parents;
  }
}
