import { type CheckpointReference, type Encryption, type Keep, SandboxerError } from "@sandboxer/protocol";
import type { SnapshotMember, SnapshotPayload } from "../backends/backend.ts";
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
  /** The checkpoint that the sandbox's current state came from. */
  readonly parent: string | null;
  /** The image that its state resembles most; absent: the parent's. */
  readonly base?: string | undefined;
}

export interface StoredCheckpoint {
  readonly name: string;
  /** The size of the image's own object, without its packs. */
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
  /** The image, if it was opened before. */
  readonly image?: OpenImage | undefined;
}

/** The images of a sandbox, and `latest`, which names the newest for readers that do not read heads. */
export class CheckpointRepository {
  readonly #store: ObjectStore;
  readonly #images: ImageStore;

  constructor(store: ObjectStore, images: ImageStore = new ImageStore(store)) {
    this.#store = store;
    this.#images = images;
  }

  /**
   * Writes a saved state as a new image and reads its manifest back. Names grow along a sandbox's life even if a clock
   * went back: each is later than all existing ones, and than all marks. The owner publishes it in the head.
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

  /** Copies the sandbox's image from another store; the reference is that of the copy. */
  async adopt(sandboxId: string, from: ObjectStore, checkpoint: CheckpointReference): Promise<CheckpointReference> {
    const ms = Math.max(checkpointMs(checkpoint.name) ?? 0, (await this.#greatestTakenMs(sandboxId)) + 1);
    const key = checkpointKey(sandboxId, checkpoint.name);
    const holder = sandboxHolder(sandboxId);
    const { key: placed } = await this.#images.adopt(from, key, keysFrom(sandboxId, ms), holder);
    return { ...checkpoint, name: placed.slice(checkpointsFolder(sandboxId).length + 1) };
  }

  /** Extracts an image into an existing, empty folder; throws `image_damaged` with the reason if it is unusable. */
  async load(sandboxId: string, name: string, into: string, options: LoadOptions = {}): Promise<LoadedState> {
    const image = options.image ?? (await this.open(sandboxId, name, options));
    if (options.sha256 !== undefined && options.sha256 !== image.manifestSha256) {
      throw imageDamaged(image.key, "it is not the image that the sandbox's head names");
    }
    return await this.#images.unpack(image, into, options);
  }

  /** Extracts one small member of an image; undefined if it has none of that name. */
  async loadMember(
    sandboxId: string,
    name: string,
    member: string,
    into: string,
    options: CallOptions & KeyOptions = {},
  ): Promise<SnapshotMember | undefined> {
    return await this.#images.unpackMember(await this.open(sandboxId, name, options), member, into, options);
  }

  /** Checks every byte; throws `image_damaged` with the reason. */
  async verify(sandboxId: string, name: string, options: CallOptions & KeyOptions = {}): Promise<void> {
    await this.#images.verify(await this.open(sandboxId, name, options), options);
  }

  /** Reads and checks an image's manifest: its requirements are known before its bytes are fetched. */
  async open(sandboxId: string, name: string, options: KeyOptions = {}): Promise<OpenImage> {
    if (checkpointMs(name) === undefined) {
      throw new SandboxerError("bad_request", `"${name}" is not a checkpoint name.`, {
        hint: "Names look like checkpoint_1790000000000.img.",
      });
    }
    const image = await this.#images.open(checkpointKey(sandboxId, name), options, sandboxId);
    checkOrigin(image, sandboxId);
    return image;
  }

  /** The encryption key of an image; undefined: it is not encrypted. */
  async encryptionOf(sandboxId: string, name: string): Promise<Encryption | undefined> {
    return await this.#images.encryptionOf(checkpointKey(sandboxId, name));
  }

  /** Checks whether this server has an image's key; throws if it is missing. */
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

  /** Whether the image exists, for any owner. */
  async hasImage(imageKey: string): Promise<boolean> {
    return (await this.#store.stat(imageKey)) !== undefined;
  }

  /** The content of `latest`; undefined if it is missing or invalid. For folders without a head. */
  async latestName(sandboxId: string): Promise<string | undefined> {
    const name = (await readWhole(this.#store, latestKey(sandboxId), { end: 256 }))?.toString("utf8").trim();
    return name === undefined || checkpointMs(name) === undefined ? undefined : name;
  }

  /** Updates `latest` to the head, after the head moved and before it is reported. */
  async writeLatest(sandboxId: string, name: string): Promise<void> {
    await this.#store.writeText(latestKey(sandboxId), name);
  }

  /** The images before the newest published one, which is always kept, by whether a rule keeps them. */
  async judge(sandboxId: string, newestName: string, keep: Keep): Promise<JudgedCheckpoints> {
    const newestMs = checkpointMs(newestName) ?? -1;
    const dated = (await this.list(sandboxId))
      .map(({ name }) => ({ name, ms: checkpointMs(name) ?? Infinity }))
      .filter(({ ms }) => ms <= newestMs);
    const byRule = keptBy(keep, dated);
    const stays = (each: (typeof dated)[number]): boolean => byRule.has(each) || each.name === newestName;
    return { kept: dated.filter(stays), going: dated.filter((each) => !stays(each)) };
  }

  /** How many bytes would be freed without these images, for any owner. */
  async freedBytes(imageKeys: readonly string[], { signal }: CallOptions = {}): Promise<number> {
    return await freedBytes(this.#store, imageKeys, signal);
  }

  /** Removes the images that a rule does not keep, see {@link judge}; returns the removed names. */
  async prune(sandboxId: string, newestName: string, keep: Keep): Promise<readonly string[]> {
    const removed = (await this.judge(sandboxId, newestName, keep)).going.map(({ name }) => name);
    const images = removed.map((name) => checkpointKey(sandboxId, name));
    for (const image of images) await this.#store.delete(image);
    if (images.length > 0) await this.#images.forgetCopies(images);
    return removed;
  }

  /** How many bytes {@link removeAll} removes, and how many it leaves to garbage collection. */
  async weighAll(sandboxId: string): Promise<RemovedBytes> {
    return await weighRemoval(this.#store, sandboxId, await this.#imageKeys(sandboxId));
  }

  /**
   * Removes every image of a deleted sandbox, its unshared data keys, packs that nobody else ever used, and its
   * timeline. Its tombstone stays.
   */
  async removeAll(sandboxId: string): Promise<void> {
    const folder = checkpointsFolder(sandboxId);
    await this.#images.removing(sandboxHolder(sandboxId), await this.#imageKeys(sandboxId), async () => {
      await this.#store.deleteTree(folder);
    });
    await removeOwnPacks(this.#store, sandboxId, folder);
    await this.#store.deleteTree(`timelines/${sandboxId}`);
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
