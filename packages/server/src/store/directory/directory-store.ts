import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { isErrno, SandboxerError } from "@sandboxer/protocol/errors";
import { checkFolder, checkKey, joinKey } from "../keys.ts";
import { probeStore } from "../probe.ts";
import type {
  BlobStat,
  Cell,
  Chunks,
  ListedObject,
  MarkedCell,
  ObjectStore,
  ReadOptions,
  SwapOutcome,
  WriteOptions,
  WriteOutcome,
} from "../store.ts";
import { DirectoryBlobs } from "./directory-blobs.ts";
import { DirectoryCells } from "./directory-cells.ts";
import type { Syncs } from "./durable.ts";
import { closeFolder } from "../../support/private-folder.ts";
import { recordDamaged } from "../../support/record-damage.ts";
import { hasCode } from "../../support/errno.ts";
import { TemporaryFiles } from "./temporary-files.ts";

const UNFIT_HINT =
  "Use a folder that this user can write to, on a file system with hard links (ext4, xfs, btrfs, NFS).";

/** As many files as Node works on at once by default. */
const FILE_THREADS = 4;

export interface DirectoryOptions {
  /** For cells; absent: before the answer. */
  readonly syncs?: Syncs;
}

/** A store in a folder of a file system with hard links. Names that begin with a dot belong to this driver. */
export class DirectoryStore implements ObjectStore {
  readonly address: string;
  readonly #cells: DirectoryCells;
  readonly #blobs: DirectoryBlobs;

  private constructor(root: string, temporary: TemporaryFiles, syncs: Syncs | undefined) {
    this.address = root;
    this.#cells = new DirectoryCells(root, temporary, syncs);
    this.#blobs = new DirectoryBlobs(root, temporary);
  }

  /**
   * Makes the folder private, and removes half-written files of dead processes of this machine. The first write creates
   * the folder.
   */
  static async open(root: string, { syncs }: DirectoryOptions = {}): Promise<DirectoryStore> {
    return await inTermsOfStore(root, async () => {
      await closeFolder(root);
      const temporary = new TemporaryFiles(root);
      await temporary.removeAbandoned();
      return new DirectoryStore(root, temporary, syncs);
    });
  }

  async readCell(key: string): Promise<Cell | undefined> {
    return await inTermsOfStore(checkKey(key), () =>
      this.#cells.read(key).catch((error: unknown) => {
        throw asUnreadable(error, join(this.address, key));
      }),
    );
  }

  async swapCell(key: string, expected: string | undefined, body: Uint8Array): Promise<SwapOutcome> {
    return await inTermsOfStore(checkKey(key), () => this.#cells.swap(key, expected, body));
  }

  async deleteCell(key: string): Promise<void> {
    await inTermsOfStore(checkKey(key), () => this.#cells.delete(key));
  }

  async *listCells(folder: string): AsyncIterable<string> {
    yield* iterateInTermsOfStore(checkFolder(folder), this.#cells.list(folder));
  }

  async *listMarks(folder: string): AsyncIterable<MarkedCell> {
    yield* iterateInTermsOfStore(checkFolder(folder), this.#cells.listMarks(folder));
  }

  localFile(key: string): string {
    return join(this.address, checkKey(key));
  }

  async stat(key: string): Promise<BlobStat | undefined> {
    return await inTermsOfStore(checkKey(key), () => this.#blobs.stat(key));
  }

  async *read(key: string, options: ReadOptions = {}): AsyncIterable<Uint8Array> {
    yield* iterateInTermsOfStore(checkKey(key), this.#blobs.read(key, options));
  }

  async write(key: string, chunks: Chunks, options: WriteOptions = {}): Promise<WriteOutcome> {
    return await inTermsOfStore(checkKey(key), () => this.#blobs.write(key, chunks, options));
  }

  async writeText(key: string, text: string): Promise<void> {
    await this.write(key, [Buffer.from(text)]);
  }

  async *list(folder: string): AsyncIterable<ListedObject> {
    checkFolder(folder);
    for (const entry of await this.#entries(folder)) {
      const key = joinKey(folder, entry.name);
      if (entry.isDirectory()) yield* this.list(key);
      if (!entry.isFile()) continue;
      const found = await this.stat(key);
      if (found !== undefined) yield { key, sizeBytes: found.sizeBytes };
    }
  }

  async *listFolders(folder: string): AsyncIterable<string> {
    checkFolder(folder);
    for (const entry of await this.#entries(folder)) {
      if (entry.isDirectory()) yield entry.name;
    }
  }

  async delete(key: string): Promise<void> {
    await inTermsOfStore(checkKey(key), () => rm(join(this.address, key), { force: true }));
  }

  async deleteTree(folder: string): Promise<void> {
    await inTermsOfStore(checkKey(folder), () => rm(join(this.address, folder), { force: true, recursive: true }));
  }

  async probe(): Promise<void> {
    await inTermsOfStore("its root", () => stat(this.address));
    await probeStore(this, UNFIT_HINT, FILE_THREADS);
  }

  /** Names that are not valid keys are foreign, or belong to this driver. */
  async #entries(folder: string) {
    try {
      const entries = await readdir(join(this.address, folder), { withFileTypes: true });
      return entries.filter((entry) => /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(entry.name));
    } catch (error) {
      if (hasCode(error, "ENOENT", "ENOTDIR")) return [];
      throw asStoreError(error, folder === "" ? "its root" : folder);
    }
  }
}

async function inTermsOfStore<T>(what: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw asStoreError(error, what);
  }
}

async function* iterateInTermsOfStore<T>(what: string, source: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* source;
  } catch (error) {
    throw asStoreError(error, what);
  }
}

const NO_SPACE = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** Converts a file system error to the errors of the store's contract. Other errors pass unchanged. */
function asStoreError(thrown: unknown, what: string): unknown {
  if (thrown instanceof SandboxerError || !isErrno(thrown)) return thrown;
  if (thrown.code !== undefined && NO_SPACE.has(thrown.code)) {
    return new SandboxerError("no_space", `No space left in the store for ${what}.`, { cause: thrown });
  }
  if (thrown.syscall === undefined) return thrown;
  return new SandboxerError("store_unavailable", `The store failed at ${what}: ${thrown.message}.`, { cause: thrown });
}

/** Errors of one file while others can be read: a bad sector, missing permissions, a folder in its place. */
const OF_ONE_FILE = new Set(["EIO", "EACCES", "EPERM", "EISDIR", "ENOTDIR", "ELOOP", "EBADMSG", "EUCLEAN"]);

/** For a record that exists but cannot be read. Whether the store exists is checked elsewhere. */
function asUnreadable(thrown: unknown, path: string): unknown {
  if (!isErrno(thrown) || !OF_ONE_FILE.has(thrown.code)) return thrown;
  return recordDamaged(thrown.path ?? path, `${thrown.message}.`, thrown);
}
