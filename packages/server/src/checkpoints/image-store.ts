import { randomUUID } from "node:crypto";
import { statfs } from "node:fs/promises";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { type Encryption, SandboxerError } from "@sandboxer/protocol";
import type { SnapshotMember, SnapshotPayload } from "../backends/backend.ts";
import type { ObjectStore } from "../store/store.ts";
import type { CallOptions } from "../support/call-options.ts";
import { unpackBlockImage, verifyBlockImage } from "./block-image/read-block-image.ts";
import { type ReadyImage, writeBlockImage } from "./block-image/write-block-image.ts";
import { BlockWorkers } from "./blocks/block-workers.ts";
import type { DataKey, KeyChoice, KeyOptions } from "./data-keys.ts";
import type { ImageContext, ImageLabel, WriteImageOptions } from "./image-context.ts";
import { sealedWith, unsealBytes } from "./keys/sealed-bytes.ts";
import { dataKeyGone } from "./keys/data-key-files.ts";
import { StoredDataKeys } from "./keys/stored-data-keys.ts";
import { onlyKey, withDataKey } from "./keys/with-data-key.ts";
import { ImageMayBeThereError } from "./image-errors.ts";
import { dataKeyOfImage, openImage, type OpenImage, readAnyEnvelope } from "./open-image.ts";
import { refuseCondemned } from "./packs/condemned.ts";
import { PackCache } from "./packs/pack-cache.ts";
import { packKey } from "./packs/pack-names.ts";
import { PackPins } from "./packs/pins.ts";
import { unpackPlainImage, verifyPlainImage } from "./plain-image.ts";
import { copyBlob } from "./read-back.ts";
import { readRange } from "./read-range.ts";
import { type ScrubOptions, StoreScrub } from "./scrub/store-scrub.ts";
import type { UnpackedImages } from "./unpacked-images.ts";
import { type LoadedState, takeUnpacked, type UnpackOptions } from "./unpacked-state.ts";

/** More is not read for a look at one member. */
const SMALL_MEMBER_BYTES = 4 * 1024 * 1024;

export interface ImageStoreOptions {
  /** The id by which others see whether this server is alive. */
  readonly publisher?: () => string;
  /** Local cache of packs of remote stores. */
  readonly cache?: PackCache;
  /** Absent: only clients' keys encrypt. */
  readonly dataKeys?: StoredDataKeys;
  /** Whether all servers of the store can read images whose packs have owners; absent: they can. */
  readonly packsHaveOwners?: () => Promise<boolean>;
  /** Whether all servers of the store can read images that are bound to their origin; absent: they can. */
  readonly bindsOrigin?: () => Promise<boolean>;
  /** The memory of this machine and the size of the volume that a folder is on; absent: the real ones. */
  readonly machineBytes?: (folder: string) => Promise<number>;
  /** Unpacked images on this machine; absent: none are kept. */
  readonly unpacked?: UnpackedImages;
}

function checked(state: SnapshotPayload): LoadedState {
  return { ...state, verified: Promise.resolve() };
}

async function memoryAndDisk(folder: string): Promise<number> {
  const { blocks, bsize } = await statfs(folder);
  return totalmem() + blocks * bsize;
}

export type SavedImage = Omit<ReadyImage, "bytes"> & { readonly key: string };

const WORKERS = new BlockWorkers();
const DEFAULT_CACHE_BYTES = 1024 ** 3;

/** Saved states as images of a store. */
export class ImageStore {
  readonly #context: ImageContext;
  readonly #keys: StoredDataKeys;

  constructor(store: ObjectStore, options: ImageStoreOptions = {}) {
    const cache =
      options.cache ?? new PackCache(join(tmpdir(), `sandboxer-packs-${randomUUID()}`), DEFAULT_CACHE_BYTES);
    const pins = new PackPins(store, options.publisher ?? (() => ""));
    this.#keys = options.dataKeys ?? new StoredDataKeys(store);
    const { packsHaveOwners = async () => true, bindsOrigin = async () => true } = options;
    const { machineBytes = memoryAndDisk, unpacked } = options;
    const parts = { store, workers: WORKERS, cache, pins, dataKeys: this.#keys, unpacked };
    this.#context = { ...parts, packsHaveOwners, bindsOrigin, machineBytes };
  }

  /**
   * Writes a state under the first free key. When it resolves, all of the image is durable and was read back. The keys
   * are requested one after the other; `internal` if none is free.
   */
  async save(
    keys: Iterable<string>,
    state: SnapshotPayload,
    label: ImageLabel,
    options: CallOptions & WriteImageOptions = {},
  ): Promise<SavedImage> {
    const context = { ...this.#context, dataKeys: onlyKey(options.dataKey) };
    const saved = await writeBlockImage(context, state, label, options, (image) =>
      this.#firstFree(keys, (key) => this.#place(key, image)),
    ).catch((error: unknown) => {
      // The creator of its key must know, and then reports the cause.
      throw error instanceof ImageMayBeThereError && options.dataKey === undefined ? error.cause : error;
    });
    // Data that is encrypted in the store must not lie unencrypted on this machine.
    if (options.dataKey === undefined) await this.#context.unpacked?.keep(saved.sha256, state.members, saved.key);
    return saved;
  }

  /**
   * Copies an image of another store unchanged, with its packs and its data key, under the first free key. Needs no key
   * to decrypt it. Already copied parts are not copied again.
   */
  async adopt(from: ObjectStore, imageKey: string, keys: Iterable<string>, holder: string): Promise<SavedImage> {
    const { store, pins } = this.#context;
    const { sizeBytes, footer, envelope } = await readAnyEnvelope(from, imageKey);
    const packs = envelope?.packs ?? [];
    const dataKey = envelope?.encryption?.key_id;
    const pin = envelope === undefined ? undefined : await pins.hold({ uuid: envelope.writer_id });
    try {
      await refuseCondemned(store, packs);
      if (dataKey !== undefined) await this.#keys.adopt(from, dataKey, holder);
      for (const { id } of packs) await copyBlob(from, packKey(id), store, packKey(id));
      const allBytes = packs.reduce((sum, pack) => sum + pack.size_bytes, sizeBytes);
      const saved = { sha256: footer.manifestSha256, sizeBytes: allBytes, addedBytes: allBytes };
      const placed = await this.#firstFree(keys, async (key) =>
        (await copyBlob(from, imageKey, store, key)) ? saved : "conflict",
      );
      if (dataKey !== undefined && !(await this.#keys.confirm(dataKey, holder))) throw dataKeyGone(dataKey);
      return placed;
    } finally {
      await pin?.release();
    }
  }

  /** Runs a write under its data key. `base` is the image that it is written against. */
  async withKey<Result>(
    choice: KeyChoice,
    holder: string,
    base: string | undefined,
    write: (dataKey: DataKey | undefined) => Promise<Result>,
  ): Promise<Result> {
    return await withDataKey(this.#keys, { choice, holder, base }, write);
  }

  /** `origin`: the sandbox that it must have been saved from, if known. */
  async open(key: string, options: KeyOptions = {}, origin?: string): Promise<OpenImage> {
    const dataKeys = { open: async (keyId: string) => await this.#keys.open(keyId, options) };
    return await openImage(this.#context.store, key, dataKeys, origin);
  }

  /** Throws as {@link open} would for a missing key; checks nothing else. */
  async checkKey(key: string, options: KeyOptions = {}): Promise<void> {
    const dataKey = await dataKeyOfImage(this.#context.store, key);
    if (dataKey !== undefined) await this.#keys.open(dataKey, options);
  }

  /** The encryption key of an image; undefined: it is not encrypted. */
  async encryptionOf(key: string): Promise<Encryption | undefined> {
    const dataKey = await dataKeyOfImage(this.#context.store, key);
    return dataKey === undefined ? undefined : await this.#keys.encryptionOf(dataKey);
  }

  /** Removes a holder's images, their local unpacked copies, and the data keys that nobody else needs. */
  async removing(holder: string, images: readonly string[], remove: () => Promise<void>): Promise<void> {
    const dataKeys = new Set<string>();
    for (const key of (await this.#keys.isUsed()) ? images : []) {
      const dataKey = await dataKeyOfImage(this.#context.store, key);
      if (dataKey !== undefined) dataKeys.add(dataKey);
    }
    await remove();
    await this.forgetCopies(images);
    for (const dataKey of dataKeys) await this.#keys.release(dataKey, holder);
  }

  /** Also removes local unpacked copies of removed images. */
  async forgetCopies(images: readonly string[]): Promise<void> {
    await this.#context.unpacked?.forgetImages(images);
  }

  /** The same for images that other servers or a collection removed. */
  async forgetCopiesOfRemoved(): Promise<void> {
    await this.#context.unpacked?.forgetUnless(async (key) => (await this.#context.store.stat(key)) !== undefined);
  }

  /** A holder that was to have an image under a data key has none. */
  async release(dataKeyId: string, holder: string): Promise<void> {
    await this.#keys.release(dataKeyId, holder);
  }

  /** Bytes beside an image, under its key or none. */
  async unsealed(what: string, stored: Buffer, options: KeyOptions = {}): Promise<Buffer | undefined> {
    const dataKey = sealedWith(stored);
    if (dataKey === undefined) return stored;
    return unsealBytes(await this.#keys.open(dataKey, options), what, stored);
  }

  /**
   * Extracts every member into a folder, checking everything while writing. If it throws, the contents of the folder
   * must not be used. Nothing is synced: the image stays, and can be extracted again.
   */
  async unpack(image: OpenImage, into: string, options: UnpackOptions = {}): Promise<LoadedState> {
    if (image.format === 1) return checked(await unpackPlainImage(this.#context.store, image, into, options));
    const here = options.fromStore === true ? undefined : await takeUnpacked(this.#context, image, into, options);
    if (here !== undefined) return here;
    const state = await unpackBlockImage(this.#context, image, into, options);
    const { dataKey, manifestSha256, key } = image;
    if (dataKey === undefined) await this.#context.unpacked?.keep(manifestSha256, state.members, key);
    return checked(state);
  }

  /** Extracts one small member into a folder; undefined if the image has none of that name. */
  async unpackMember(
    image: OpenImage,
    name: string,
    into: string,
    options: CallOptions = {},
  ): Promise<SnapshotMember | undefined> {
    if (image.format === 1) return undefined;
    const members = image.manifest.members.filter((member) => member.name === name);
    if (members.every(({ size_bytes: sizeBytes }) => sizeBytes > SMALL_MEMBER_BYTES)) return undefined;
    const part = { ...image, manifest: { ...image.manifest, members } };
    return (await unpackBlockImage(this.#context, part, into, options)).members[0];
  }

  /** Checks every byte; throws `image_damaged` with the first error. */
  async verify(image: OpenImage, options: CallOptions = {}): Promise<void> {
    if (image.format === 1) return await verifyPlainImage(this.#context.store, image, options);
    await verifyBlockImage(this.#context, image, options);
  }

  /** For a check that reports all damage and continues. */
  scrub(options: ScrubOptions & KeyOptions): StoreScrub {
    const dataKeys = { open: async (keyId: string) => await this.#keys.open(keyId, options) };
    return new StoreScrub({ ...this.#context, dataKeys }, options);
  }

  async #firstFree(
    keys: Iterable<string>,
    save: (key: string) => Promise<Omit<SavedImage, "key"> | "conflict">,
  ): Promise<SavedImage> {
    let last = "";
    for (const key of keys) {
      last = key;
      if ((await this.#context.store.stat(key)) !== undefined) continue;
      const saved = await save(key);
      if (saved !== "conflict") return { key, ...saved };
    }
    throw new SandboxerError("internal", `The fresh name ${last} is taken.`);
  }

  async #place(key: string, { bytes, ...saved }: ReadyImage): Promise<Omit<SavedImage, "key"> | "conflict"> {
    const { store } = this.#context;
    try {
      if ((await store.write(key, [bytes], { ifAbsent: true })).outcome === "conflict") return "conflict";
      const stored = await readRange(store, key, 0, bytes.byteLength);
      if (!stored.equals(bytes) || (await store.stat(key))?.sizeBytes !== bytes.byteLength) {
        throw new SandboxerError("checkpoint_failed", `The image ${key} reads back differently from what was written.`);
      }
      return saved;
    } catch (error) {
      // Whatever has the name, an image without its packs must not exist.
      throw (await this.#isNotThere(key, bytes)) ? error : new ImageMayBeThereError(key, { cause: error });
    }
  }

  /** Removes an image that could not be read back; true if it surely does not exist. */
  async #isNotThere(key: string, bytes: Buffer): Promise<boolean> {
    const { store } = this.#context;
    try {
      if ((await store.stat(key)) === undefined) return true;
      const stored = Buffer.concat(await Array.fromAsync(store.read(key)));
      // A foreign image is not touched. An image that reads back differently may be ours.
      if (!stored.equals(bytes)) return false;
      await store.delete(key);
      return true;
    } catch {
      return false;
    }
  }
}
