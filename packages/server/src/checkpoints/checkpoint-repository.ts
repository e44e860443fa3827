import { type CheckpointReference, type Encryption, type Keep, SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../backends/backend.ts";
import { type ObjectStore, readWhole } from "../store/store.ts";
import type { CallOptions } from "../support/call-options.ts";
import { keptBy } from "./retention.ts";
import { checkpointKey, checkpointMs, checkpointName, checkpointsFolder, removalMarkMs } from "./checkpoint-names.ts";
import { checkOrigin, imageDamaged } from "./image-errors.ts";
import { ImageStore } from "./image-store.ts";
import type { LoadedState, UnpackOptions } from "./unpacked-state.ts";
import { sandboxHolder } from "./keys/data-key-cell.ts";
import type { KeyChoice, KeyOptions } from "./data-keys.ts";
import type { OpenImage } from "./open-image.ts";
import { freedBytes } from "./packs/freed-bytes.ts";
import { type RemovedBytes, removeOwnPacks, weighRemoval } from "./packs/owned-packs.ts";

export interface SaveOptions extends CallOptions, KeyChoice {
  readonly wallMs: number;
  /** The checkpoint that the sandbox's present state came from. */
  readonly parent: string | null;
  /** The image that its state resembles most; absent: the parent's. */
  readonly base?: string | undefined;
}

export interface StoredCheckpoint {
  readonly name: string;
  /** Of the image's own object, without the packs that it names. */
  readonly sizeBytes: number;
}

/** A checkpoint, and when it was captured. */
interface DatedCheckpoint {
  readonly name: string;
  readonly ms: number;
}

export interface JudgedCheckpoints {
  readonly kept: readonly DatedCheckpoint[];
  readonly going: readonly DatedCheckpoint[];
}

export interface LoadOptions extends UnpackOptions {
  /** The digest that the head names; an image with another one is refused. */
  readonly sha256?: string;
}

/** The images of a sandbox, and `latest`, which names the newest for those who do not read heads. */
export class CheckpointRepository {
  readonly #store: ObjectStore;
  readonly #images: ImageStore;

  constructor(store: ObjectStore, images: ImageStore = new ImageStore(store)) {
    this.#store = store;
    this.#images = images;
  }

  /**
   * Writes a saved state as a new image and reads its manifest back. Names grow along a sandbox's life even where a clock
   * went back: each is later than all that are there, and than those that a mark says were there. Publishing it, in the
   * head, is up to the owner.
   */
  async save(sandboxId: string, state: SnapshotPayload, options: SaveOptions): Promise<CheckpointReference> {
    const { wallMs, parent, encryption, presentedKey, ...rest } = options;
    const firstMs = Math.max(Math.trunc(wallMs), (await this.#greatestTakenMs(sandboxId)) + 1);
    const label = { sandboxId, createdAt: new Date(wallMs).toISOString(), parent };
    const base = options.base ?? (parent === null ? undefined : checkpointKey(sandboxId, parent));
    const choice = { encryption, presentedKey };
    const saved = await this.#images.withKey(choice, sandboxHolder(sandboxId), base, (dataKey) =>
      this.#images.save(keysFrom(sandboxId, firstMs), state, label, { ...rest, base, dataKey }),
    );
    return {
      name: saved.key.slice(checkpointsFolder(sandboxId).length + 1),
      sha256: saved.sha256,
      size_bytes: saved.sizeBytes,
      added_bytes: saved.addedBytes,
      created_at: label.createdAt,
      kind: state.kind,
      parent,
    };
  }

  /** Takes over the image that another store has of the sandbox; the reference is that of the copy. */
  async adopt(sandboxId: string, from: ObjectStore, checkpoint: CheckpointReference): Promise<CheckpointReference> {
    const ms = Math.max(checkpointMs(checkpoint.name) ?? 0, (await this.#greatestTakenMs(sandboxId)) + 1);
    const key = checkpointKey(sandboxId, checkpoint.name);
    const holder = sandboxHolder(sandboxId);
    const { key: placed } = await this.#images.adopt(from, key, keysFrom(sandboxId, ms), holder);
    return { ...checkpoint, name: placed.slice(checkpointsFolder(sandboxId).length + 1) };
  }

  /** Extracts an image into an existing, empty folder; `image_damaged` says what is wrong with one that cannot be used. */
  async load(sandboxId: string, name: string, into: string, options: LoadOptions = {}): Promise<LoadedState> {
    const image = await this.open(sandboxId, name, options);
    if (options.sha256 !== undefined && options.sha256 !== image.manifestSha256) {
      throw imageDamaged(image.key, "it is not the image that the sandbox's head names");
    }
    return await this.#images.unpack(image, into, options);
  }

  /** Looks at every byte; `image_damaged` says what is wrong. */
  async verify(sandboxId: string, name: string, options: CallOptions & KeyOptions = {}): Promise<void> {
    await this.#images.verify(await this.open(sandboxId, name, options), options);
  }

  /** Reads and checks an image's manifest: what it needs is known before its bytes are fetched. */
  async open(sandboxId: string, name: string, options: KeyOptions = {}): Promise<OpenImage> {
    if (checkpointMs(name) === undefined) {
      throw new SandboxerError("bad_request", `"${name}" is not a checkpoint name.`, {
        hint: "Names look like checkpoint_1790000000000.img.",
      });
    }
    const image = await this.#images.open(checkpointKey(sandboxId, name), options);
    checkOrigin(image, sandboxId);
    return image;
  }

  /** What an image is under; undefined: it is not encrypted. */
  async encryptionOf(sandboxId: string, name: string): Promise<Encryption | undefined> {
    return await this.#images.encryptionOf(checkpointKey(sandboxId, name));
  }

  /** Whether an image's key can be had here; throws what is missing. */
  async checkKey(sandboxId: string, name: string, options: KeyOptions): Promise<void> {
    await this.#images.checkKey(checkpointKey(sandboxId, name), options);
  }

  /** Newest first. */
  async list(sandboxId: string): Promise<readonly StoredCheckpoint[]> {
    const folder = checkpointsFolder(sandboxId);
    const found: StoredCheckpoint[] = [];
    for await (const { key, sizeBytes } of this.#store.list(folder)) {
      const name = key.slice(folder.length + 1);
      if (checkpointMs(name) !== undefined) found.push({ name, sizeBytes });
    }
    return found.toSorted((a, b) => (checkpointMs(b.name) ?? 0) - (checkpointMs(a.name) ?? 0));
  }

  /** Whether there is such an image, whosever it is. */
  async hasImage(imageKey: string): Promise<boolean> {
    return (await this.#store.stat(imageKey)) !== undefined;
  }

  /** What `latest` says; undefined when it is missing or names no checkpoint. For folders without a head. */
  async latestName(sandboxId: string): Promise<string | undefined> {
    const name = (await readWhole(this.#store, latestKey(sandboxId), { end: 256 }))?.toString("utf8").trim();
    return name === undefined || checkpointMs(name) === undefined ? undefined : name;
  }

  /** Brings `latest` up to the head. To be done after the head moved and before anyone is told. */
  async writeLatest(sandboxId: string, name: string): Promise<void> {
    await this.#store.writeText(latestKey(sandboxId), name);
  }

  /** The images before the newest published one, which always stays, by whether a rule keeps them. */
  async judge(sandboxId: string, newestName: string, keep: Keep): Promise<JudgedCheckpoints> {
    const newestMs = checkpointMs(newestName) ?? -1;
    const dated = (await this.list(sandboxId))
      .map(({ name }) => ({ name, ms: checkpointMs(name) ?? Infinity }))
      .filter(({ ms }) => ms <= newestMs);
    const byRule = keptBy(keep, dated);
    const stays = (each: (typeof dated)[number]): boolean => byRule.has(each) || each.name === newestName;
    return { kept: dated.filter(stays), going: dated.filter((each) => !stays(each)) };
  }

  /** How many bytes the store would have less without these images, whosever they are. */
  async freedBytes(imageKeys: readonly string[], { signal }: CallOptions = {}): Promise<number> {
    return await freedBytes(this.#store, imageKeys, signal);
  }

  /** Removes the images that a rule does not keep, as {@link judge} says; gives the names of those removed. */
  async prune(sandboxId: string, newestName: string, keep: Keep): Promise<readonly string[]> {
    const removed = (await this.judge(sandboxId, newestName, keep)).going.map(({ name }) => name);
    const images = removed.map((name) => checkpointKey(sandboxId, name));
    for (const image of images) await this.#store.delete(image);
    if (images.length > 0) await this.#images.forgetCopies(images);
    return removed;
  }

  /** How many bytes {@link removeAll} removes, and how many of what it leaves to a collection. */
  async weighAll(sandboxId: string): Promise<RemovedBytes> {
    return await weighRemoval(this.#store, sandboxId, await this.#imageKeys(sandboxId));
  }

  /**
   * Removes every image of a destroyed sandbox, the data keys that nobody else needs, and the packs that nobody else has
   * ever used. Its tombstone stays.
   */
  async removeAll(sandboxId: string): Promise<void> {
    const folder = checkpointsFolder(sandboxId);
    await this.#images.removing(sandboxHolder(sandboxId), await this.#imageKeys(sandboxId), async () => {
      await this.#store.deleteTree(folder);
    });
    await removeOwnPacks(this.#store, sandboxId, folder);
  }

  async #imageKeys(sandboxId: string): Promise<readonly string[]> {
    return (await this.list(sandboxId)).map(({ name }) => checkpointKey(sandboxId, name));
  }

  async #greatestTakenMs(sandboxId: string): Promise<number> {
    const folder = checkpointsFolder(sandboxId);
    let takenMs = -1;
    for await (const { key } of this.#store.list(folder)) {
      const name = key.slice(folder.length + 1);
      takenMs = Math.max(takenMs, checkpointMs(name) ?? removalMarkMs(name) ?? -1);
    }
    return takenMs;
  }
}

function latestKey(sandboxId: string): string {
  return checkpointKey(sandboxId, "latest");
}

function* keysFrom(sandboxId: string, firstMs: number): Generator<string> {
  for (let ms = firstMs; ; ms++) yield checkpointKey(sandboxId, checkpointName(ms));
}
