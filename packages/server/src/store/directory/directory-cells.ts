import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { joinKey } from "../keys.ts";
import type { Cell, MarkedCell, SwapOutcome } from "../store.ts";
import { FOLDER_MODE, type Syncs } from "./durable.ts";
import { hasCode, undefinedIf } from "../../support/errno.ts";
import type { TemporaryFiles } from "./temporary-files.ts";
import { type CellVersion, NO_VERSION, readCellFile, VersionFiles } from "./version-files.ts";

const CELL_SUFFIX = ".json";

/**
 * A sandbox's head has its versions in `.head`, beside its view `metadata.json`; every other cell `NAME.json` has them
 * in `.NAME`.
 */
const HEAD_NAME = "metadata";

/** The version of a cell that was put there as a plain file, by hand or by an older program. */
const PLAIN = "plain";

/**
 * Cells in a directory: the versions decide, and the file under the cell's own name is a view of the newest for people.
 * A plain file without versions is the cell until its first swap.
 */
export class DirectoryCells {
  readonly #root: string;
  readonly #temporary: TemporaryFiles;
  readonly #syncs: Syncs | undefined;
  #prepared: string | undefined;

  constructor(root: string, temporary: TemporaryFiles, syncs?: Syncs) {
    this.#root = root;
    this.#temporary = temporary;
    this.#syncs = syncs;
  }

  async read(key: string): Promise<Cell | undefined> {
    for (;;) {
      const newest = await this.#versions(key).newest();
      if (newest !== undefined) return { body: newest.body, version: format(newest), file: newest.path };
      const plain = await this.#readPlain(key);
      if (plain === undefined) return undefined;
      // A view without versions, unless they appeared meanwhile: by a first swap, or because the store came back.
      if ((await this.#versions(key).newestNumber()) > 0) continue;
      return { body: plain, version: PLAIN, file: join(this.#root, key) };
    }
  }

  async swap(key: string, expected: string | undefined, body: Uint8Array): Promise<SwapOutcome> {
    const base = parse(expected);
    if (base === undefined) return { outcome: "conflict" };
    const versions = this.#versions(key);
    const isOwn = this.#syncs === "behind the answer" && basename(key, CELL_SUFFIX) === HEAD_NAME;
    if (isOwn && expected === undefined) {
      const draft = this.#prepared ?? (await this.#temporary.path());
      this.#prepared = undefined;
      const first = versions.createAtOnce(draft, body);
      void this.#prepareNext(basename(versions.folder)).catch(() => {});
      if (first !== undefined) return { outcome: "written", version: format(first) };
    }
    if (base === NO_VERSION) {
      const isPlain = (await this.#readPlain(key)) !== undefined;
      if (isPlain !== (expected === PLAIN)) return { outcome: "conflict" };
    }
    const written = await versions.append(base, body);
    if (written === undefined) return { outcome: "conflict" };
    // Heads in a folder that belongs to one server need no view.
    if (!isOwn) await this.#refreshView(key, versions, written, body);
    return { outcome: "written", version: format(written) };
  }

  /**
   * The versions are removed in one step: removed one by one, an old version would be the newest for a moment, and
   * could be swapped. The view is removed first, because without versions it would be the cell.
   */
  async delete(key: string): Promise<void> {
    await rm(join(this.#root, key), { force: true });
    const versions = this.#versions(key);
    for (;;) {
      const removed = await this.#temporary.path();
      try {
        await rename(versions.folder, removed);
        return await rm(removed, { force: true, recursive: true });
      } catch (error) {
        this.#temporary.noteFailure(error);
        if (!hasCode(error, "ENOENT")) throw error;
        // Either the cell does not exist, or there is no place to move it to.
        if ((await versions.newestNumber()) === 0) return;
      }
    }
  }

  /** Creating folders is slow: those of the next head are created in advance. */
  async #prepareNext(name: string): Promise<void> {
    const draft = await this.#temporary.path();
    await mkdir(join(draft, name), { recursive: true, mode: FOLDER_MODE });
    this.#prepared = draft;
  }

  async *list(folder: string): AsyncIterable<string> {
    for (const name of (await this.#newest(folder)).keys()) yield joinKey(folder, name);
  }

  async *listMarks(folder: string): AsyncIterable<MarkedCell> {
    for (const [name, { path, mark }] of await this.#newest(folder)) {
      // Missing means that a newer version was written meanwhile.
      const sizeBytes = (await stat(path).catch(undefinedIf("ENOENT")))?.size ?? 0;
      yield { key: joinKey(folder, name), sizeBytes, mark };
    }
  }

  /** The file with the content of each cell, and its mark, by the cell's name. */
  async #newest(folder: string): Promise<ReadonlyMap<string, { readonly path: string; readonly mark: string }>> {
    const entries = await readdir(join(this.#root, folder), { withFileTypes: true }).catch(
      undefinedIf("ENOENT", "ENOTDIR"),
    );
    const found = new Map<string, { readonly path: string; readonly mark: string }>();
    for (const entry of entries ?? []) {
      const { name } = entry;
      const path = join(this.#root, folder, name);
      const hidden = name.startsWith(".");
      if (!hidden && entry.isFile() && name.endsWith(CELL_SUFFIX) && !found.has(name))
        found.set(name, { path, mark: PLAIN });
      if (!hidden || !entry.isDirectory()) continue;
      const newest = await new VersionFiles(path).newestName();
      if (newest !== undefined) found.set(cellNameOf(name), { path: join(path, newest), mark: newest });
    }
    return found;
  }

  /**
   * Two writers may get here in either order, so each reads again after writing and continues until the view shows the
   * newest version. The head has already moved: if the view cannot be written, the next writer does it.
   */
  async #refreshView(key: string, versions: VersionFiles, written: CellVersion, body: Uint8Array): Promise<void> {
    const view = { number: written.number, body };
    try {
      for (;;) {
        await this.#replacePlain(key, view.body);
        if ((await versions.newestNumber()) === view.number) return;
        const newest = await versions.newest();
        // The cell was removed meanwhile.
        if (newest === undefined) return await rm(join(this.#root, key), { force: true });
        Object.assign(view, newest);
      }
    } catch {
      // See above.
    }
  }

  /** Not synced: only the versions must survive a power failure. */
  async #replacePlain(key: string, body: Uint8Array): Promise<void> {
    const temporary = await this.#temporary.path();
    try {
      await writeFile(temporary, body, { mode: 0o600 });
      await rename(temporary, join(this.#root, key));
    } catch (error) {
      this.#temporary.noteFailure(error);
      await rm(temporary, { force: true });
      throw error;
    }
  }

  async #readPlain(key: string): Promise<Buffer | undefined> {
    return await readCellFile(join(this.#root, key)).catch(undefinedIf("ENOTDIR"));
  }

  #versions(key: string): VersionFiles {
    const stem = basename(key, CELL_SUFFIX);
    return new VersionFiles(join(this.#root, dirname(key), stem === HEAD_NAME ? ".head" : `.${stem}`), this.#syncs);
  }
}

function cellNameOf(versionsFolder: string): string {
  return (versionsFolder === ".head" ? HEAD_NAME : versionsFolder.slice(1)) + CELL_SUFFIX;
}

function format(version: CellVersion): string {
  return `${version.number}:${version.nonce}`;
}

/** Undefined for a text that is not a version. */
function parse(version: string | undefined): CellVersion | undefined {
  if (version === undefined || version === PLAIN) return NO_VERSION;
  const [, number, nonce] = /^([1-9]\d*):(.+)$/.exec(version) ?? [];
  return number === undefined || nonce === undefined ? undefined : { number: Number(number), nonce };
}
