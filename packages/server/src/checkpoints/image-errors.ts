import { SandboxerError } from "@sandboxer/protocol";

/** It is unknown whether an image exists under its name. Its packs stay; `cause` is the failure. */
export class ImageMayBeThereError extends Error {}

/** An unusable image, with the reason. */
export function imageDamaged(
  image: string,
  problem: string,
  member?: string,
  details: Readonly<Record<string, unknown>> = {},
): SandboxerError {
  const where = member === undefined ? "" : `, member "${member}"`;
  return new SandboxerError("image_damaged", `The image ${image}${where}: ${problem}.`, {
    details: { image, member, problem, ...details },
  });
}

/**
 * Images name the sandbox that they were saved from, in the encrypted and authenticated part if they are under a key:
 * the image of another sandbox is always refused.
 */
export function checkOrigin(
  { key, manifest }: { readonly key: string; readonly manifest: { readonly sandbox_id: string } },
  sandboxId: string,
): void {
  if (manifest.sandbox_id === sandboxId) return;
  throw imageDamaged(key, `it was saved from the sandbox ${manifest.sandbox_id}, not from ${sandboxId}`);
}

export function imageMissing(image: string): SandboxerError {
  return new SandboxerError("image_damaged", `The image ${image} is not in the store.`, {
    details: { image, problem: "missing" },
  });
}

/** The local copy of an image differs from the image; the store's own is unaffected. */
export function localCopyDiffers(image: string, member: string): SandboxerError {
  return imageDamaged(image, "its copy on this machine differs", member, { local_copy: true });
}

export function isOfLocalCopy(error: unknown): boolean {
  return error instanceof SandboxerError && error.details["local_copy"] === true;
}

export function isDamaged(error: unknown): error is SandboxerError {
  return error instanceof SandboxerError && error.code === "image_damaged";
}

/** For a read that ignores this failure. */
export function nothingIfDamaged(error: unknown): undefined {
  if (!isDamaged(error)) throw error;
}

export function isMissing(error: unknown): boolean {
  return isDamaged(error) && error.details["problem"] === "missing";
}
