import { randomUUID } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { undefinedIf } from "../support/errno.ts";
import { acquireFileLock, isFileLockFree, type FileLock } from "../support/file-lock.ts";

/**
 * Tells the servers of this machine apart that share an image folder. Each holds a lock while it lives, so that what a
 * killed one held is free at once.
 */
export class Holders {
  readonly id = randomUUID();
  readonly #folder: string;
  #lock: Promise<FileLock | undefined> | undefined;

  constructor(folder: string) {
    this.#folder = join(folder, "holders");
  }

  /** Call it before the id is written anywhere. */
  async begin(): Promise<void> {
    this.#lock ??= acquireFileLock(this.#path(this.id));
    await this.#lock;
  }

  /** The ids of live servers. An id that is not among them is never used again. */
  async living(): Promise<ReadonlySet<string>> {
    const names = (await readdir(this.#folder).catch(undefinedIf("ENOENT"))) ?? [];
    const living = new Set<string>(this.#lock === undefined ? [] : [this.id]);
    for (const name of names) {
      const id = name.replace(/\.lock$/, "");
      if (id === this.id || id === name) continue;
      if (await isFileLockFree(this.#path(id))) await rm(this.#path(id), { force: true });
      else living.add(id);
    }
    return living;
  }

  async close(): Promise<void> {
    await (await this.#lock)?.release();
    if (this.#lock !== undefined) await rm(this.#path(this.id), { force: true });
  }

  #path(id: string): string {
    return join(this.#folder, `${id}.lock`);
  }
}
