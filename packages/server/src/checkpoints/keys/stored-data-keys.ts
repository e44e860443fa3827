import { randomBytes, randomUUID } from "node:crypto";
import { type Encryption, SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../../store/store.ts";
import type { DataKey, DataKeys, KeyChoice, KeyOptions } from "../data-keys.ts";
import { changeCell } from "../snapshot-cell.ts";
import { DATA_KEYS_FOLDER, dataKeyCell, decodeDataKey, type StoredDataKey, wrappedKey } from "./data-key-cell.ts";
import {
  changeDataKey,
  dataKeyGone,
  readDataKey,
  readWrapped,
  removeDataKey,
  serverKeyOf,
  unwrapWith,
} from "./data-key-files.ts";
import { dataKeyOfImage } from "../open-image.ts";
import { keyRequired, wrongKey } from "./key-errors.ts";
import { KEY_BYTES, type MasterKey } from "./master-key.ts";
import { type MasterKeys, NO_MASTER_KEYS, presentName } from "./master-keys.ts";

export interface NewDataKey extends DataKey {
  /** Whether nothing can be under it yet. */
  readonly fresh: boolean;
}

/**
 * The data keys of a store: one for each new line of images. Everything that is written against an image with it uses
 * it too, under the same master key. It is removed when nobody needs it any more: nothing that was encrypted with it
 * can be read from then on, wherever a copy is. A writer becomes a holder of a data key before anything is under it. A
 * deleted holder leaves, and the last one removes the key. Both change one cell, so that one of the two comes first: a
 * key that is being removed accepts no holder.
 */
export class StoredDataKeys implements DataKeys {
  readonly #store: ObjectStore;
  readonly #masters: MasterKeys;

  constructor(store: ObjectStore, masters: MasterKeys = NO_MASTER_KEYS) {
    this.#store = store;
    this.#masters = masters;
  }

  /**
   * The encryption to record for something new; null: the server's own key, whose name may change, or none. Reads the
   * key, so that a missing one shows early.
   */
  async settle(choice: KeyChoice): Promise<Encryption | null> {
    const settled = this.#settled(choice.encryption);
    if (settled === null) return null;
    await this.#masterOf(settled, choice);
    return this.isServers(settled) ? null : settled;
  }

  /** The encryption under this key, by its current name; null: it is not encrypted. */
  named(encryption: Encryption | null | undefined): Encryption | null {
    return this.#settled(encryption);
  }

  /**
   * The recorded encryption, without the name of the server's own key: records of earlier servers have it, and a
   * rotation renames data keys but leaves records unchanged.
   */
  async recorded(encryption: Encryption | null | undefined, image: string): Promise<Encryption | null> {
    if (encryption?.held_by !== "server") return encryption ?? null;
    if (this.isServers(encryption)) return null;
    const dataKey = await dataKeyOfImage(this.#store, image);
    const under = dataKey === undefined ? undefined : await this.encryptionOf(dataKey);
    return under !== undefined && this.isServers(under) ? null : encryption;
  }

  /** Whether it is the server's own key. */
  isServers(encryption: Encryption): boolean {
    const settled = this.#settled(encryption);
    return settled?.held_by === "server" && settled.key === this.#masters.defaultName;
  }

  /** Whether there are data keys at all: one request instead of one for each image. */
  async isUsed(): Promise<boolean> {
    for await (const _ of this.#store.listCells(DATA_KEYS_FOLDER)) return true;
    return false;
  }

  /** The master key of a data key; undefined: there is none. */
  async encryptionOf(keyId: string): Promise<Encryption | undefined> {
    const cell = await this.#read(keyId);
    return cell && { held_by: cell.held_by, key: cell.key };
  }

  /** The key for an image that is written against another one; undefined: it is not encrypted. */
  async forWriting(choice: KeyChoice, holder: string, baseKey: string | undefined): Promise<NewDataKey | undefined> {
    const base = baseKey === undefined ? undefined : await dataKeyOfImage(this.#store, baseKey);
    const settled = this.#settled(choice.encryption) ?? (await this.#ofBase(base));
    if (settled === null) return undefined;
    const master = await this.#masterOf(settled, choice);
    const again = base === undefined ? undefined : await this.#useAgain(base, settled, choice, holder);
    return again ?? (await this.#createKey(settled, master, holder));
  }

  /**
   * Call it after an image was written under a key and before it counts: a collection may have begun to remove its
   * holder because it had none. False if the key was removed: then the image cannot be read.
   */
  async confirm(keyId: string, holder: string): Promise<boolean> {
    return await this.#hold(await this.#read(keyId), holder);
  }

  /** Copies a data key of another store unchanged, for a holder of this one. Needs no master key. */
  async adopt(from: ObjectStore, keyId: string, holder: string): Promise<void> {
    const cell = await readDataKey(from, keyId);
    const wrapped = cell === undefined ? undefined : await readWrapped(from, cell);
    if (cell === undefined || wrapped === undefined) throw dataKeyGone(keyId);
    const present = await this.#read(keyId);
    if (present === undefined) {
      await this.#create({ ...cell, holders: [holder], nonce: "", history: [] });
    }
    await this.#store.write(wrappedKey(cell), [wrapped]);
    if (!(await this.confirm(keyId, holder))) throw dataKeyGone(keyId);
  }

  async open(keyId: string, options: KeyOptions = {}): Promise<Uint8Array> {
    const cell = await this.#read(keyId);
    if (cell === undefined || cell.state === "removed") throw dataKeyGone(keyId);
    return await this.#unwrap(cell, options);
  }

  /** A holder has no image under it any more; the last one removes it. */
  async release(keyId: string, holder: string): Promise<void> {
    await this.releaseAll(keyId, (each) => each === holder);
  }

  /** Whether it is removed now. */
  async releaseAll(keyId: string, isGone: (holder: string) => boolean): Promise<boolean> {
    const after = await changeDataKey(this.#store, keyId, (cell) => {
      const holders = cell.holders.filter((holder) => !isGone(holder));
      if (holders.length === cell.holders.length && holders.length > 0) return undefined;
      return { ...cell, holders, state: holders.length === 0 ? "removed" : "kept" };
    });
    if (after?.state === "kept") return false;
    await removeDataKey(this.#store, keyId);
    return true;
  }

  /** On a server without a key of its own, data that was encrypted with a server's key stays encrypted. */
  async #ofBase(base: string | undefined): Promise<Encryption | null> {
    const under = base === undefined ? undefined : await this.encryptionOf(base);
    return under?.held_by === "server" ? this.#settled(under) : null;
  }

  #settled(encryption: Encryption | null | undefined): Encryption | null {
    const { defaultName } = this.#masters;
    if (encryption?.held_by === "client") return encryption;
    if (encryption != null) return { held_by: "server", key: presentName(this.#masters, encryption.key) };
    return defaultName === undefined ? null : { held_by: "server", key: defaultName };
  }

  async #masterOf({ held_by: heldBy, key }: Encryption, { presentedKey }: KeyOptions): Promise<MasterKey> {
    if (heldBy === "server") return await this.#masters.resolve(key);
    if (presentedKey === undefined) throw keyRequired(key);
    if (presentedKey.fingerprint !== key) throw wrongKey(key, presentedKey.fingerprint, "the one that was sent");
    return presentedKey;
  }

  /** Undefined if the base's key belongs to another, is being removed, or cannot be opened here. */
  async #useAgain(
    keyId: string,
    settled: Encryption,
    options: KeyOptions,
    holder: string,
  ): Promise<NewDataKey | undefined> {
    const present = await this.#read(keyId);
    if (present === undefined || present.state === "removed" || !this.#isUnder(present, settled)) return undefined;
    let bytes: Uint8Array;
    try {
      bytes = await this.#unwrap(present, options);
    } catch (error) {
      if (error instanceof SandboxerError && ["key_unavailable", "wrong_key", "image_damaged"].includes(error.code)) {
        return undefined;
      }
      throw error;
    }
    return (await this.#hold(present, holder)) ? { id: keyId, bytes, fresh: false } : undefined;
  }

  /** Adds a permanent holder; false if the key is being removed. */
  async #hold(read: StoredDataKey | undefined, holder: string): Promise<boolean> {
    if (read === undefined || read.state === "removed") return false;
    if (isHolder(read, holder)) return true;
    const after = await changeDataKey(this.#store, read.id, (cell) => {
      if (isHolder(cell, holder)) return undefined;
      const leaving = cell.leaving?.filter((each) => each !== holder) ?? [];
      return { ...cell, holders: [...new Set([...cell.holders, holder])], leaving };
    });
    return after?.state === "kept";
  }

  #isUnder(cell: StoredDataKey, { held_by: heldBy, key }: Encryption): boolean {
    if (cell.held_by !== heldBy) return false;
    return heldBy === "client" ? cell.key === key : presentName(this.#masters, cell.key) === key;
  }

  async #createKey({ held_by, key }: Encryption, master: MasterKey, holder: string): Promise<NewDataKey> {
    const id = randomUUID();
    const bytes = randomBytes(KEY_BYTES);
    const { fingerprint } = master;
    const created_at = new Date().toISOString();
    // The cell first: a blob without one belongs to nobody.
    const named = { held_by, key, fingerprint, holders: [holder], created_at };
    await this.#create({ format: 1, id, state: "kept", ...named, nonce: "", history: [] });
    try {
      await this.#store.write(wrappedKey({ id, fingerprint }), [master.wrap(id, bytes)]);
    } catch (error) {
      // Garbage collection finds leftovers once the holder is removed.
      await this.release(id, holder).catch(() => {});
      throw error;
    }
    return { id, bytes, fresh: true };
  }

  async #unwrap(cell: StoredDataKey, options: KeyOptions): Promise<Uint8Array> {
    const master =
      cell.held_by === "client" ? await this.#masterOf(cell, options) : await serverKeyOf(this.#masters, cell);
    const wrapped = await readWrapped(this.#store, cell);
    if (wrapped !== undefined) return unwrapWith(master, cell.id, wrapped);
    // Re-encrypted meanwhile: the cell names the new blob.
    const again = await this.#read(cell.id);
    if (again === undefined || wrappedKey(again) === wrappedKey(cell)) throw dataKeyGone(cell.id);
    return await this.#unwrap(again, options);
  }

  async #read(keyId: string): Promise<StoredDataKey | undefined> {
    return await readDataKey(this.#store, keyId);
  }

  /** Unless it was done before. */
  async #create(cell: StoredDataKey): Promise<void> {
    const { id } = cell;
    const decode = (body: Uint8Array): StoredDataKey => decodeDataKey(id, body);
    await changeCell(this.#store, { key: dataKeyCell(id), decode, change: (found) => found ?? cell });
  }
}

function isHolder({ holders, leaving }: StoredDataKey, holder: string): boolean {
  return holders.includes(holder) && leaving?.includes(holder) !== true;
}
