import { randomUUID } from "node:crypto";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { link, mkdir, readdir, readFile, stat, unlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { cellTooLarge, LARGEST_CELL_BYTES } from "../cell-limit.ts";
import { AmbiguousWriteError } from "../store.ts";
import { recordDamaged } from "../../support/record-damage.ts";
import { syncPath } from "../../support/replace-file.ts";
import { FOLDER_MODE, makeFolder, type Syncs, syncLater } from "./durable.ts";
import { hasCode, undefinedIf } from "../../support/errno.ts";

/** A version of a cell: its number, and a nonce that tells it from another one of the same number. */
export interface CellVersion {
  readonly number: number;
  readonly nonce: string;
}

export interface VersionFile extends CellVersion {
  readonly path: string;
  readonly parentNonce: string;
  readonly body: Buffer;
}

/** The version before the first one. */
export const NO_VERSION: CellVersion = { number: 0, nonce: "" };

/** More than a writer can fall behind without an ambiguous answer. */
const KEPT_VERSIONS = 16;

const VERSION_NAME = /^v(\d{16})$/;
const DRAFT_NAME = /^\.draft-(\d{16})-/;

/**
 * Compare-and-swap in a folder: version N+1 is a file that `link(2)` creates if it does not exist, so that one of
 * several writers succeeds. Each file names the nonce of the version that it replaced. A writer that was stopped
 * between reading and linking, while others continued and removed old numbers, may create a removed number again; the
 * parent's nonce in the following number shows that, and such a file is never the newest.
 */
export class VersionFiles {
  readonly folder: string;
  readonly #syncs: Syncs;

  constructor(folder: string, syncs: Syncs = "before the answer") {
    this.folder = folder;
    this.#syncs = syncs;
  }

  /**
   * The first version, with the folder that belongs to the cell alone, by renaming a folder that was prepared at
   * `draft`. Undefined: that folder already exists. Synchronous, because the thread pool takes ten times as long.
   */
  createAtOnce(draft: string, body: Uint8Array): CellVersion | undefined {
    const first: CellVersion = { number: 1, nonce: randomUUID() };
    const target = dirname(this.folder);
    const drafted = join(draft, basename(this.folder));
    try {
      mkdirSync(drafted, { recursive: true, mode: FOLDER_MODE });
      writeFileSync(join(drafted, versionName(1)), contentOf({ nonce: first.nonce, parent: "" }, body), {
        mode: 0o600,
      });
      renameSync(draft, target);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      if (hasCode(error, "EEXIST", "ENOTEMPTY")) return undefined;
      throw error;
    }
    syncLater(join(this.folder, versionName(1)));
    return first;
  }

  async newest(): Promise<VersionFile | undefined> {
    for (;;) {
      const number = newestOf(await this.#names());
      if (number === 0) return undefined;
      const found = await this.#read(number);
      // Missing means that at least KEPT_VERSIONS newer ones were written meanwhile.
      if (found !== undefined) return found;
    }
  }

  async newestNumber(): Promise<number> {
    return newestOf(await this.#names());
  }

  /** The file of the newest version, which is different for each version. */
  async newestName(): Promise<string | undefined> {
    const number = await this.newestNumber();
    return number === 0 ? undefined : versionName(number);
  }

  /** Undefined means conflict. */
  async append(base: CellVersion, body: Uint8Array): Promise<CellVersion | undefined> {
    if (!(await this.#isNewest(base))) return undefined;
    const next: CellVersion = { number: base.number + 1, nonce: randomUUID() };
    const behind = this.#syncs === "behind the answer";
    if (base.number === 0)
      await (behind ? mkdir(this.folder, { recursive: true, mode: FOLDER_MODE }) : makeFolder(this.folder));
    const draft = join(this.folder, `.draft-${digits(next.number)}-${next.nonce}`);
    let removed: Promise<void> | undefined;
    const removeDraft = (): Promise<void> => (removed ??= unlink(draft).catch(() => undefined));
    try {
      await writeDraft(draft, { nonce: next.nonce, parent: base.nonce }, body, !behind);
      if (!(await this.#link(draft, next))) return undefined;
      void removeDraft();
      return await this.#settle(next);
    } catch (error) {
      // The folder is missing: the cell was removed meanwhile.
      if (hasCode(error, "ENOENT")) return undefined;
      throw error;
    } finally {
      await removeDraft();
    }
  }

  async #isNewest(base: CellVersion): Promise<boolean> {
    const found = await this.newest();
    return (found?.number ?? 0) === base.number && (found?.nonce ?? "") === base.nonce;
  }

  async #link(draft: string, next: CellVersion): Promise<boolean> {
    const target = join(this.folder, versionName(next.number));
    try {
      await link(draft, target);
      return true;
    } catch (error) {
      // Others remove the draft only when its number is long past.
      if (hasCode(error, "ENOENT")) return false;
      if (hasCode(error, "ENOSPC", "EDQUOT", "EPERM", "ENOTSUP", "EOPNOTSUPP", "EMLINK", "EROFS")) throw error;
      if (!hasCode(error, "EEXIST")) throw new AmbiguousWriteError(target, error);
      const present = await this.#read(next.number);
      if (present === undefined) throw new AmbiguousWriteError(target, error);
      // Our own nonce: the link was created but its answer was lost, as network file systems do.
      return present.nonce === next.nonce;
    }
  }

  async #settle(next: CellVersion): Promise<CellVersion | undefined> {
    const target = join(this.folder, versionName(next.number));
    try {
      if (this.#syncs === "before the answer") await syncPath(this.folder);
      // A power failure in the meantime may undo it; the end of this process does not.
      else syncLater(target);
      const names = await this.#names();
      const newest = newestOf(names);
      if (newest > next.number) {
        const following = await this.#read(next.number + 1);
        if (following === undefined) throw new Error(`version ${next.number + 1} was already removed`);
        if (following.parentNonce !== next.nonce) {
          await unlink(target).catch(() => undefined);
          return undefined;
        }
      }
      await this.#removeOld(names, newest);
      return next;
    } catch (error) {
      throw new AmbiguousWriteError(target, error);
    }
  }

  async #removeOld(names: readonly string[], newest: number): Promise<void> {
    for (const name of names) {
      const number = Number(VERSION_NAME.exec(name)?.[1] ?? DRAFT_NAME.exec(name)?.[1] ?? newest);
      if (number <= newest - KEPT_VERSIONS) await unlink(join(this.folder, name)).catch(() => undefined);
    }
  }

  async #names(): Promise<readonly string[]> {
    return (await readdir(this.folder).catch(undefinedIf("ENOENT"))) ?? [];
  }

  async #read(number: number): Promise<VersionFile | undefined> {
    const path = join(this.folder, versionName(number));
    const content = await readCellFile(path);
    return content && parseVersionFile(number, content, path);
  }
}

/** Undefined if it does not exist. */
export async function readCellFile(path: string): Promise<Buffer | undefined> {
  const found = await stat(path).catch(undefinedIf("ENOENT"));
  if (found === undefined) return undefined;
  if (found.size > LARGEST_CELL_BYTES) throw cellTooLarge(path);
  return await readFile(path).catch(undefinedIf("ENOENT"));
}

/** The first line of a version file; the cell's body follows it. */
interface DraftHeader {
  readonly nonce: string;
  readonly parent: string;
}

function parseVersionFile(number: number, content: Buffer, path: string): VersionFile {
  const lineEnd = content.indexOf("\n");
  try {
    const { nonce, parent } = JSON.parse(content.toString("utf8", 0, lineEnd)) as DraftHeader;
    return { path, number, nonce, parentNonce: parent, body: content.subarray(lineEnd + 1) };
  } catch (error) {
    throw recordDamaged(path, "its first line is not a version line.", error);
  }
}

async function writeDraft(path: string, header: DraftHeader, body: Uint8Array, sync: boolean): Promise<void> {
  await writeFile(path, contentOf(header, body), { flag: "wx", mode: 0o600, flush: sync });
}

function contentOf(header: DraftHeader, body: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), body]);
}

function newestOf(names: readonly string[]): number {
  let newest = 0;
  for (const name of names) newest = Math.max(newest, Number(VERSION_NAME.exec(name)?.[1] ?? 0));
  return newest;
}

function digits(number: number): string {
  return String(number).padStart(16, "0");
}

function versionName(number: number): string {
  return `v${digits(number)}`;
}
