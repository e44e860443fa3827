import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { SnapshotPayload } from "../backends/backend.ts";
import type { CallOptions } from "../support/call-options.ts";
import type { OpenBlockImage } from "./block-image/open-block-image.ts";
import { compareBlockImage } from "./block-image/read-block-image.ts";
import type { ImageContext } from "./image-context.ts";
import { isOfLocalCopy, localCopyDiffers } from "./image-errors.ts";
import type { KeyOptions } from "./data-keys.ts";

export interface UnpackOptions extends CallOptions, KeyOptions {
  /** Return the local copy at once, and verify it meanwhile. */
  readonly verifyBeside?: boolean;
  /** Read from the store, whatever is on this machine: the caller wants to know whether others could load it. */
  readonly fromStore?: boolean;
}

/** A loaded state, and whether it is what was saved. */
export interface LoadedState extends SnapshotPayload {
  /**
   * Rejects with `image_damaged` if it is not; the local copy is then removed, and the next load comes from the store.
   */
  readonly verified: Promise<void>;
}

/**
 * The local copy of the state, verified like data from the store; undefined if there is none, or it differs: then it
 * was removed.
 */
export async function takeUnpacked(
  context: ImageContext,
  image: OpenBlockImage,
  into: string,
  options: UnpackOptions,
): Promise<LoadedState | undefined> {
  const { manifest, manifestSha256 } = image;
  const members = manifest.members.map(({ name, size_bytes: sizeBytes }) => ({
    name,
    path: join(into, name),
    sizeBytes,
  }));
  const names = members.map(({ name }) => name);
  const { unpacked } = context;
  if (unpacked === undefined || !(await unpacked.take(manifestSha256, names, into))) return undefined;
  const verified = compareCopy(context, image, into, options).catch(async (error: unknown) => {
    if (isOfLocalCopy(error)) await unpacked.forget(manifestSha256);
    throw error;
  });
  // A failure surfaces in the load.
  verified.catch(() => {});
  // The backend refuses a kind of a later release.
  const state = { kind: manifest.kind, members, requirements: manifest.requirements, verified };
  if (options.verifyBeside === true) return state;
  try {
    await verified;
    return state;
  } catch (error) {
    if (!isOfLocalCopy(error)) throw error;
    for (const { path } of members) await rm(path, { force: true });
    return undefined;
  }
}

/** Sizes first: a file that is too long has the right blocks too. */
async function compareCopy(
  context: ImageContext,
  image: OpenBlockImage,
  folder: string,
  options: CallOptions,
): Promise<void> {
  for (const { name, size_bytes: sizeBytes } of image.manifest.members) {
    if ((await stat(join(folder, name))).size !== sizeBytes) throw localCopyDiffers(image.key, name);
  }
  await compareBlockImage(context, image, folder, options);
}
