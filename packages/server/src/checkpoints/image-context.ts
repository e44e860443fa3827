import type { ObjectStore } from "../store/store.ts";
import type { BlockWorkers } from "./blocks/block-workers.ts";
import type { DataKey, DataKeys } from "./data-keys.ts";
import type { PackCache } from "./packs/pack-cache.ts";
import type { PackPins } from "./packs/pins.ts";
import type { UnpackedImages } from "./unpacked-images.ts";

/** The services for writing and reading images. */
export interface ImageContext {
  readonly store: ObjectStore;
  readonly workers: BlockWorkers;
  readonly cache: PackCache;
  readonly pins: PackPins;
  readonly dataKeys: DataKeys | undefined;
  /** Whether every server of the store can read images whose packs have owners. */
  readonly packsHaveOwners: () => Promise<boolean>;
  /** Whether every server of the store can read images that are bound to their origin. */
  readonly bindsOrigin: () => Promise<boolean>;
  /** The memory of this machine and the size of the volume that a folder is on. */
  readonly machineBytes: (folder: string) => Promise<number>;
  /** Unpacked images on this machine. */
  readonly unpacked: UnpackedImages | undefined;
}

/** The metadata of an image besides its members. */
export interface ImageLabel {
  readonly sandboxId: string;
  readonly createdAt: string;
  readonly parent: string | null;
}

export interface WriteImageOptions {
  /** The snapshot of the image; absent: it is a checkpoint of the label's sandbox. */
  readonly snapshotId?: string;
  /** The key of the image whose state resembles this one most. */
  readonly base?: string | undefined;
  readonly dataKey?: DataKey | undefined;
}
