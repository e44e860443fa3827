import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { SnapshotMember } from "../backends/backend.ts";
import { type ObjectStore, readWhole } from "../store/store.ts";
import type { CallOptions } from "../support/call-options.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { imageDamaged, isDamaged } from "./image-errors.ts";
import { ImageStore } from "./image-store.ts";
import type { LoadedState, UnpackOptions } from "./unpacked-state.ts";
import { snapshotHolder } from "./keys/data-key-cell.ts";
import { isKeyProblem } from "./keys/key-errors.ts";
import type { KeyOptions } from "./data-keys.ts";
import type { OpenImage } from "./open-image.ts";
import { changeSnapshot } from "./snapshot-cell.ts";
import {
  type CapturedState,
  type NewSnapshot,
  type SavedSnapshot,
  type SaveSnapshotOptions,
  type SnapshotChanges,
  needsStore,
  snapshotNotFound,
} from "./snapshot-types.ts";
import { nameTaken, SnapshotNames } from "./snapshot-names.ts";
import {
  checkSnapshotName,
  decodeSnapshot,
  filesKey,
  imageKey,
  isSnapshotId,
  isSnapshotName,
  recordKey,
  SNAPSHOTS_FOLDER,
  type StoredSnapshot,
  snapshotFolder,
} from "./snapshot-record.ts";
import { removeOwnPacks } from "./packs/owned-packs.ts";
import { removeSnapshot, SnapshotSave } from "./snapshot-save.ts";

const READS_AT_ONCE = 16;

export interface SnapshotRepositoryOptions {
  /** The id by which others see whether this server is alive. */
  readonly publisher: () => string;
  readonly images?: ImageStore;
  /** Whether states may be stored here, or only records of what backends keep themselves; absent: they may. */
  readonly keepsBytes?: boolean;
  /** Called for each change with the current record; undefined: it was removed. For a mirror elsewhere. */
  readonly onChange?: (id: string, snapshot: StoredSnapshot | undefined) => Promise<void>;
}

/**
 * Snapshots in a store, where every server sees them. It only returns complete ones: not those being saved or removed.
 * The `name` of a record is its current one. Unknown ids are `snapshot_not_found`.
 */
export class SnapshotRepository {
  /** Whether it can store the bytes of a state, or only records. */
  readonly keepsBytes: boolean;
  readonly #store: ObjectStore;
  readonly #images: ImageStore;
  readonly #names: SnapshotNames;
  readonly #options: SnapshotRepositoryOptions;

  constructor(store: ObjectStore, options: SnapshotRepositoryOptions) {
    this.#store = store;
    this.#images = options.images ?? new ImageStore(store, { publisher: options.publisher });
    this.#names = new SnapshotNames(store);
    this.#options = options;
    this.keepsBytes = options.keepsBytes ?? true;
  }

  /** Announces the snapshot, captures it, and keeps it. On failure nothing of it is left that counts. */
  async save(
    snapshot: NewSnapshot,
    capture: () => Promise<CapturedState>,
    options: SaveSnapshotOptions,
  ): Promise<SavedSnapshot> {
    const { id, name } = snapshot;
    if (name !== null) checkSnapshotName(name);
    if (name !== null && !options.replaceName) await this.#checkFree(name);
    const save = new SnapshotSave(this.#store, this.#images, snapshot, this.#options.publisher());
    const saved = await save.run(async () => {
      const captured = await capture();
      if (!this.keepsBytes && captured.state.members.length > 0) throw needsStore();
      return captured;
    }, options);
    const replacedId = name === null ? undefined : await this.#giveName(name, id, options.replaceName);
    await this.#options.onChange?.(id, saved);
    return { snapshot: saved, replacedId };
  }

  /** By id or name. */
  async get(idOrName: string): Promise<StoredSnapshot | undefined> {
    if (isSnapshotId(idOrName)) return await this.#readPresent(idOrName);
    if (!isSnapshotName(idOrName)) return undefined;
    // A name moves in one step, and then the previous holder may be removed: the second look finds the current one.
    for (let tried: string | undefined; ;) {
      const id = await this.#names.holder(idOrName);
      if (id === undefined || id === tried) return undefined;
      const found = await this.#readPresent(id);
      if (found !== undefined) return { ...found, name: idOrName };
      tried = id;
    }
  }

  /** In no particular order. A damaged record does not hide the others; `onDamaged` is called. */
  async list(onDamaged?: (id: string, error: SandboxerError) => void): Promise<readonly StoredSnapshot[]> {
    const folders = await Array.fromAsync(this.#store.listFolders(SNAPSHOTS_FOLDER));
    const read = async (id: string): Promise<StoredSnapshot | undefined> =>
      await this.#readPresent(id).catch((error: unknown) => {
        if (!isDamaged(error)) throw error;
        onDamaged?.(id, error);
        return undefined;
      });
    const found = await mapAtOnce(folders.filter(isSnapshotId), READS_AT_ONCE, read);
    return found.filter((each) => each !== undefined);
  }

  /** Extracts the state into an existing, empty folder. A damaged or missing state is marked so, and an error. */
  async load(id: string, into: string, options: UnpackOptions = {}): Promise<LoadedState> {
    return await this.#marking(id, async (snapshot) =>
      this.#images.unpack(await this.#open(snapshot, options), into, options),
    );
  }

  /** Extracts one small member of the state; undefined if it has none of that name. */
  async loadMember(
    id: string,
    member: string,
    into: string,
    options: CallOptions & KeyOptions = {},
  ): Promise<SnapshotMember | undefined> {
    const snapshot = await this.get(id);
    if (snapshot?.state !== "ready") return undefined;
    return await this.#images.unpackMember(await this.#open(snapshot, options), member, into, options);
  }

  /** Checks every byte; the record gets the result. */
  async verify(id: string, options: CallOptions & KeyOptions = {}): Promise<StoredSnapshot> {
    try {
      await this.#marking(id, async (snapshot) => this.#images.verify(await this.#open(snapshot, options), options));
      return await this.#mark(id, "ready", null);
    } catch (thrown) {
      const found = await this.get(id);
      if (found === undefined || found.state === "ready" || isKeyProblem(thrown)) throw thrown;
      return found;
    }
  }

  /** Throws as {@link load} would for a missing key. */
  async checkKey(id: string, options: KeyOptions): Promise<void> {
    await this.#images.checkKey(imageKey(id), options);
  }

  /** Records the result of a full check. A snapshot that was removed meanwhile does not need it. */
  async note(id: string, state: "ready" | "damaged" | "missing", problem: string | null): Promise<void> {
    try {
      await this.#mark(id, state, problem);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** The encoded file list; undefined if there is none. */
  async readFiles(id: string, options: KeyOptions = {}): Promise<Uint8Array | undefined> {
    const snapshot = await this.#readAny(id);
    if (snapshot === undefined) throw snapshotNotFound(id);
    if (!snapshot.has_files) return undefined;
    // The list is only needed for comparisons, so even a missing one is not an error.
    const stored = await readWhole(this.#store, filesKey(id));
    return stored && (await this.#images.unsealed(id, stored, options));
  }

  async amend(id: string, { name, labels, pinned, proof }: SnapshotChanges): Promise<StoredSnapshot> {
    const present = await this.get(id);
    if (present === undefined) throw snapshotNotFound(id);
    if (typeof name === "string") await this.#names.take(name, id, (other) => this.#isThere(other));
    const amending = this.#change(id, (record) => {
      // The removal has already read it: a change now would be lost.
      if (record.state === "removing") throw snapshotNotFound(id);
      return {
        ...record,
        ...(name === undefined ? {} : { name }),
        ...(labels === undefined ? {} : { labels: { ...labels } }),
        ...(pinned === undefined ? {} : { pinned }),
        ...proof,
      };
    });
    const amended = await amending.catch(async (error: unknown) => {
      if (typeof name === "string" && name !== present.name && isNotFound(error)) await this.#names.release(name, id);
      throw error;
    });
    if (name !== undefined && present.name !== null && present.name !== name) {
      await this.#names.release(present.name, id);
    }
    const effective = name === undefined ? { ...amended, name: present.name } : amended;
    await this.#options.onChange?.(id, effective);
    return effective;
  }

  /**
   * Removes a snapshot, unless `refuse` throws. It is called twice: at the second time no sandbox can be created from
   * the snapshot any more, so that earlier creations are seen, and later ones fail.
   */
  async remove(id: string, refuse: (present: StoredSnapshot) => Promise<void>): Promise<void> {
    const present = await this.#readPresent(id);
    if (present === undefined) throw snapshotNotFound(id);
    await refuse(present);
    const remover = this.#options.publisher();
    const { before } = await this.#swap(id, (record) => {
      if (record.state === "removing") throw snapshotNotFound(id);
      return { ...record, state: "removing", removed_by: remover };
    });
    const state = before?.state ?? "ready";
    const ifOurs = (change: Partial<StoredSnapshot>) => (record: StoredSnapshot) =>
      record.state === "removing" && record.removed_by === remover ? { ...record, ...change } : undefined;
    try {
      await refuse(before === undefined ? present : await this.#withName(before));
    } catch (error) {
      await this.#swap(id, ifOurs({ state }));
      throw error;
    }
    // From here on it will be removed: a collection does it if this is interrupted.
    await this.#swap(id, ifOurs({ removed_by: "" }));
    await this.#images.removing(snapshotHolder(id), [imageKey(id)], async () => await removeSnapshot(this.#store, id));
    await removeOwnPacks(this.#store, id, snapshotFolder(id));
    if (before?.name != null) await this.#names.release(before.name, id);
    await this.#options.onChange?.(id, undefined);
  }

  async #checkFree(name: string): Promise<void> {
    const held = await this.get(name);
    if (held !== undefined) throw nameTaken(name, held.id);
  }

  async #giveName(name: string, id: string, replace: boolean): Promise<string | undefined> {
    try {
      if (!replace) await this.#names.take(name, id, (other) => this.#isThere(other));
      return replace ? await this.#names.move(name, id) : undefined;
    } catch (error) {
      if (error instanceof SandboxerError && error.code === "name_taken") await this.remove(id, async () => {});
      throw error;
    }
  }

  async #isThere(id: string): Promise<boolean> {
    return (await this.#readPresent(id)) !== undefined;
  }

  /** A snapshot that is neither being saved nor removed, with its current name. */
  async #readPresent(id: string): Promise<StoredSnapshot | undefined> {
    const record = await this.#readAny(id);
    return record === undefined || record.state === "removing" ? undefined : await this.#withName(record);
  }

  /** The name that it has now, if any. */
  async #withName(record: StoredSnapshot): Promise<StoredSnapshot> {
    const { name, id } = record;
    return name === null || (await this.#names.holder(name)) === id ? record : { ...record, name: null };
  }

  /** A creation that began before the removal still gets it. */
  async #readAny(id: string): Promise<StoredSnapshot | undefined> {
    const cell = isSnapshotId(id) ? await this.#store.readCell(recordKey(id)) : undefined;
    const record = cell === undefined ? undefined : decodeSnapshot(id, cell.body);
    return record?.state === "saving" ? undefined : record;
  }

  async #open(snapshot: StoredSnapshot, options: KeyOptions): Promise<OpenImage> {
    const image = await this.#images.open(imageKey(snapshot.id), options, snapshot.sandbox_id);
    if (image.manifestSha256 === snapshot.image_sha256) return image;
    throw imageDamaged(image.key, "it is not the image that the snapshot's record names");
  }

  /** Marks an unusable snapshot, so that nobody has to find out again. */
  async #marking<Result>(id: string, work: (snapshot: StoredSnapshot) => Promise<Result>): Promise<Result> {
    const snapshot = await this.#readAny(id);
    if (snapshot === undefined) throw snapshotNotFound(id);
    try {
      return await work(snapshot);
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      if (error.code !== "image_damaged") throw thrown;
      // A snapshot that was removed meanwhile is not damaged.
      if ((await this.#readAny(id)) === undefined) throw snapshotNotFound(id);
      const state = error.details["problem"] === "missing" ? "missing" : "damaged";
      await this.#mark(id, state, error.message);
      throw new SandboxerError("image_damaged", `The snapshot ${id} is ${state}: ${error.message}`, {
        cause: thrown,
        hint: "Use another snapshot. This one can be deleted.",
        details: { ...error.details, snapshot_id: id, state },
      });
    }
  }

  async #mark(id: string, state: "ready" | "damaged" | "missing", problem: string | null): Promise<StoredSnapshot> {
    const marked = await this.#change(id, (record) =>
      record.state === "removing" || record.state === state ? undefined : { ...record, state, problem },
    );
    const present = (await this.#readPresent(id)) ?? marked;
    await this.#options.onChange?.(id, present);
    return present;
  }

  async #change(id: string, change: (record: StoredSnapshot) => StoredSnapshot | undefined): Promise<StoredSnapshot> {
    const { after } = await this.#swap(id, change);
    if (after === undefined) throw snapshotNotFound(id);
    return after;
  }

  async #swap(id: string, change: (record: StoredSnapshot) => StoredSnapshot | undefined) {
    return await changeSnapshot(this.#store, id, (record) => {
      if (record === undefined || record.state === "saving") throw snapshotNotFound(id);
      return change(record);
    });
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof SandboxerError && error.code === "snapshot_not_found";
}
