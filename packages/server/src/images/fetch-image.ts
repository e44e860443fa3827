import { lstat, mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../support/call-options.ts";
import { hasCode, undefinedIf } from "../support/errno.ts";
import { acquireFileLock } from "../support/file-lock.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import type { Places } from "../support/places.ts";
import type { ImageFolders } from "./image-folders.ts";
import type { ImageLimits } from "./image-limits.ts";
import type { ImageSource } from "./image-source.ts";
import { readLayerRecord, type LayerRecord } from "./layers/layer-record.ts";
import { LayerRefused } from "./layers/layer-refused.ts";
import { stackLayers, type Layer } from "./layers/stack-layers.ts";
import { UnpackMeter, unpackLayer } from "./layers/unpack-layer.ts";
import { refused, type ImageConfig, type Manifest } from "./manifest.ts";

/** Layers of one image that are downloaded or unpacked at the same time. */
const AT_ONCE = 3;
/** Another process may unpack the same layer. */
const LOCK_MS = 60 * 60_000;

export interface ImageToFetch {
  /** For messages. */
  readonly name: string;
  readonly digest: string;
  readonly manifest: Manifest;
  readonly config: ImageConfig;
  /** Limits the layers of all images that are fetched at the same time. */
  readonly places: Places;
}

/** Gets the missing layers of an image and stacks them; returns the size of all layers, unpacked. */
export async function fetchImage(
  image: ImageToFetch,
  source: ImageSource,
  folders: ImageFolders,
  limits: ImageLimits,
  options: CallOptions,
): Promise<number> {
  const { manifest, config } = image;
  const meter = new UnpackMeter(limits);
  const progress = new PullProgress(manifest, options);
  // The first failure ends the others.
  const failed = new AbortController();
  const signal = options.signal === undefined ? failed.signal : AbortSignal.any([options.signal, failed.signal]);
  // Some images have the same layer twice.
  const unique = [...new Set(config.diffIds)];
  try {
    const layers = await mapAtOnce(unique, AT_ONCE, async (diffId) => {
      try {
        const index = config.diffIds.indexOf(diffId);
        const work = { source, folders, meter, progress, signal };
        return await image.places.run(() => ensureLayer(diffId, manifest.layers[index]!, work));
      } catch (error) {
        failed.abort(error);
        throw error;
      }
    });
    const byId = new Map(layers.map((layer) => [layer.record.diff_id, layer]));
    options.onProgress?.({ phase: "unpacking image" });
    await locked(folders.lock(image.digest), signal, async () => {
      if (await exists(folders.root(image.digest))) return;
      await mkdir(folders.roots, { recursive: true });
      await stackLayers(
        config.diffIds.map((diffId) => byId.get(diffId)!),
        folders.root(image.digest),
      );
    });
    return layers.reduce((sum, { record }) => sum + record.bytes, 0);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw reasonFor(image.name, folders, failed.signal.aborted ? failed.signal.reason : error);
  }
}

interface LayerWork {
  readonly source: ImageSource;
  readonly folders: ImageFolders;
  readonly meter: UnpackMeter;
  readonly progress: PullProgress;
  readonly signal: AbortSignal;
}

async function ensureLayer(diffId: string, blob: Manifest["layers"][number], work: LayerWork): Promise<Layer> {
  const { source, folders, meter, progress, signal } = work;
  const folder = folders.layer(diffId);
  return locked(folders.lock(diffId), signal, async () => {
    const present = await readLayerRecord(folder);
    if (present !== undefined) {
      meter.count(present.bytes, present.entries);
      progress.arrived(blob.digest, blob.size);
      return { folder, record: present };
    }
    await rm(folder, { recursive: true, force: true });
    const path = folders.download(blob.digest);
    await mkdir(folders.downloads, { recursive: true, mode: 0o700 });
    await source.layer({ blob, path, signal, onBytes: (bytes) => progress.arrived(blob.digest, bytes) });
    const record: LayerRecord = await unpackLayer({ path, sizeBytes: blob.size, diffId, into: folder, signal }, meter);
    await rm(path, { force: true });
    return { folder, record };
  });
}

/** The bytes of all layers together. */
class PullProgress {
  readonly #arrived = new Map<string, number>();
  readonly #totalBytes: number;
  readonly #onProgress: CallOptions["onProgress"];

  constructor({ layers }: Manifest, { onProgress }: CallOptions) {
    this.#totalBytes = [...new Map(layers.map(({ digest, size }) => [digest, size])).values()].reduce(
      (a, b) => a + b,
      0,
    );
    this.#onProgress = onProgress;
  }

  arrived(digest: string, bytes: number): void {
    this.#arrived.set(digest, bytes);
    const doneBytes = [...this.#arrived.values()].reduce((sum, each) => sum + each, 0);
    this.#onProgress?.({ phase: "pulling image", doneBytes, totalBytes: this.#totalBytes });
  }
}

/** Runs alone among the processes that share the folder. */
export async function locked<Result>(
  path: string,
  signal: AbortSignal | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const lock = await acquireFileLock(path, { waitMs: LOCK_MS, ...(signal === undefined ? {} : { signal }) });
  if (lock === undefined)
    throw new SandboxerError("timeout", "Another server holds a layer of the image for too long.");
  try {
    return await work();
  } finally {
    await lock.release();
  }
}

export async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(undefinedIf("ENOENT"))) !== undefined;
}

function reasonFor(name: string, folders: ImageFolders, error: unknown): SandboxerError {
  if (error instanceof SandboxerError) return error;
  if (hasCode(error, "ENOSPC", "EDQUOT") || /no space left/i.test((error as Error).message)) {
    return new SandboxerError("no_space", `No space left in ${folders.top} for the image ${name}.`, {
      cause: error,
      hint: "Free space there, or remove images with `sandboxer images prune`.",
    });
  }
  if (error instanceof LayerRefused) return refused(name, error.message);
  // Broken archives: the decompressors and the parser have no common error.
  const reason = asSandboxerError(error).message;
  return new SandboxerError("bad_request", `The image ${name} could not be unpacked: ${reason}`, { cause: error });
}
