import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isSandboxId, SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../../backends/backend.ts";
import type { ObjectStore } from "../../store/store.ts";
import { acquireFileLock, type FileLock } from "../../support/file-lock.ts";
import { replaceFile } from "../../support/replace-file.ts";
import { CheckpointRepository, type SaveOptions } from "../checkpoint-repository.ts";
import { ImageStore } from "../image-store.ts";
import type { MasterKeys } from "../keys/master-keys.ts";
import { StoredDataKeys } from "../keys/stored-data-keys.ts";
import { type UnpublishedRecord, unpublishedSchema } from "./unpublished-record.ts";
import { jsonOf } from "../../support/json.ts";

const LOCK_NAME = "lock";
const RECORD_NAME = "checkpoint.json";
const STORE_NAME = "store";
/** How long to wait for another server of this machine that is about to publish. */
const TURN_MS = 2_000;

/** A checkpoint that is only on this machine. This process holds the lock of its folder. */
export interface Unpublished {
  readonly folder: string;
  readonly record: UnpublishedRecord;
}

export interface UnpublishedOptions {
  /** The address of the store that they are for. */
  readonly store: string;
  readonly masters: MasterKeys;
  /** Opens a store in a folder of this machine. */
  readonly openFolder: (folder: string) => Promise<ObjectStore>;
}

/** The owner of the sandbox, and the state according to the head. */
export type UnpublishedOwner = Pick<UnpublishedRecord, "owner" | "replaces">;

/**
 * The checkpoints that servers of this machine could not publish before they ended. Each is a complete image, in the form
 * of a store and encrypted as it would be there, in a folder of its own:
 *
 *   {folder}/{process}/lock                            held by the process that keeps or publishes them; free after its death
 *   {folder}/{process}/{sandbox_id}/checkpoint.json    the record; missing if the checkpoint is incomplete
 *   {folder}/{process}/{sandbox_id}/store/             a directory store with this one image
 *
 * COMPATIBILITY.md describes their contents.
 */
export class UnpublishedCheckpoints {
  readonly path: string;
  readonly #options: UnpublishedOptions;
  readonly #locks = new Map<string, FileLock>();
  #own: Promise<string> | undefined;

  constructor(path: string, options: UnpublishedOptions) {
    this.path = path;
    this.#options = options;
  }

  /** Writes a captured state; when it resolves, it is durable. */
  async keep(
    sandboxId: string,
    owner: UnpublishedOwner,
    state: SnapshotPayload,
    options: Omit<SaveOptions, "base">,
  ): Promise<Unpublished> {
    this.#own ??= this.#begin();
    const folder = join(await this.#own, sandboxId);
    await remove(folder);
    try {
      const checkpoint = await this.#writeImage(join(folder, STORE_NAME), sandboxId, state, options);
      const { store } = this.#options;
      const record: UnpublishedRecord = {
        format: 1,
        sandbox_id: sandboxId,
        store,
        ...owner,
        claiming: null,
        checkpoint,
      };
      await replaceFile(join(folder, RECORD_NAME), `${JSON.stringify(record, null, 2)}\n`);
      return { folder, record };
    } catch (error) {
      await remove(folder).catch(() => {});
      throw error;
    }
  }

  /** The checkpoints of a sandbox that this process may publish or remove: their servers are dead, or are this one. */
  async of(sandboxId: string): Promise<readonly Unpublished[]> {
    const found: Unpublished[] = [];
    for (const name of await namesIn(this.path)) {
      const folder = join(this.path, name);
      if (!(await namesIn(folder)).includes(sandboxId) || !(await this.#lock(folder))) continue;
      // Under the lock, since another server may have published it before.
      const record = await readRecord(join(folder, sandboxId));
      if (record !== undefined) found.push({ folder: join(folder, sandboxId), record });
    }
    return found;
  }

  /** All checkpoints of dead servers. Unfinished ones are removed. */
  async all(): Promise<readonly Unpublished[]> {
    const found: Unpublished[] = [];
    for (const name of await namesIn(this.path)) {
      const folder = join(this.path, name);
      if (folder === (await this.#own) || !(await this.#lock(folder))) continue;
      for (const id of (await namesIn(folder)).filter(isSandboxId)) {
        const record = await readRecord(join(folder, id));
        if (record !== undefined) found.push({ folder: join(folder, id), record });
        else if (!(await namesIn(join(folder, id))).includes(RECORD_NAME)) await remove(join(folder, id));
      }
      await this.#removeIfEmpty(folder);
    }
    return found;
  }

  isForThisStore({ record }: Unpublished): boolean {
    return record.store === this.#options.store;
  }

  async change({ folder, record }: Unpublished, changes: Partial<UnpublishedRecord>): Promise<Unpublished> {
    const next = { ...record, ...changes };
    await replaceFile(join(folder, RECORD_NAME), `${JSON.stringify(next, null, 2)}\n`);
    return { folder, record: next };
  }

  async open({ folder }: Unpublished): Promise<ObjectStore> {
    return await this.#options.openFolder(join(folder, STORE_NAME));
  }

  async remove({ folder }: Unpublished): Promise<void> {
    // First the record that announces it.
    await rm(join(folder, RECORD_NAME), { force: true });
    await remove(folder);
    // This process may be about to write to its own folder.
    if (dirname(folder) !== (await this.#own)) await this.#removeIfEmpty(dirname(folder));
  }

  /** The next process may take what is left. */
  async close(): Promise<void> {
    for (const folder of this.#locks.keys()) {
      await this.#removeIfEmpty(folder);
      await this.#locks.get(folder)?.release();
      this.#locks.delete(folder);
    }
  }

  async #begin(): Promise<string> {
    const folder = join(this.path, randomUUID());
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (!(await this.#lock(folder))) throw new SandboxerError("internal", `The new folder ${folder} is locked.`);
    return folder;
  }

  async #writeImage(folder: string, sandboxId: string, state: SnapshotPayload, options: Omit<SaveOptions, "base">) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { masters, openFolder } = this.#options;
    const store = await openFolder(folder);
    const images = new ImageStore(store, { dataKeys: new StoredDataKeys(store, masters) });
    return await new CheckpointRepository(store, images).save(sandboxId, state, options);
  }

  async #lock(folder: string): Promise<boolean> {
    if (this.#locks.has(folder)) return true;
    const lock = await acquireFileLock(join(folder, LOCK_NAME), { waitMs: TURN_MS });
    if (lock !== undefined) this.#locks.set(folder, lock);
    return lock !== undefined;
  }

  async #removeIfEmpty(folder: string): Promise<void> {
    // SQLite, which holds the lock, has a file beside it.
    if ((await namesIn(folder)).some((name) => !name.startsWith(LOCK_NAME))) return;
    await remove(folder);
    await this.#locks.get(folder)?.release();
    this.#locks.delete(folder);
    if ((await this.#own) === folder) this.#own = undefined;
  }
}

async function remove(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

async function namesIn(folder: string): Promise<string[]> {
  return await readdir(folder).catch(() => []);
}

/** Undefined for an unfinished one, or one of a later release. */
async function readRecord(folder: string): Promise<UnpublishedRecord | undefined> {
  const text = await readFile(join(folder, RECORD_NAME), "utf8").catch(() => "");
  return unpublishedSchema.safeParse(jsonOf(text)).data;
}
