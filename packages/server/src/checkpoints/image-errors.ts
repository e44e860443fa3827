import { SandboxerError } from "@sandboxer/protocol";

/** It is unknown whether an image is under its name. What it needs stays; `cause` is what went wrong. */
export class ImageMayBeThereError extends Error {}

/** An image that cannot be used, named with what is wrong with it. */
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
 * Images say which sandbox they were made of, in the part that is encrypted and authenticated where they are under a key:
 * the image of another sandbox is not taken, whoever put it there.
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

/** What lies on this machine of an image is not the image; the store's own is as good as before. */
export function localCopyDiffers(image: string, member: string): SandboxerError {
  return imageDamaged(image, "its copy on this machine differs", member, { local_copy: true });
}

export function isOfLocalCopy(error: unknown): boolean {
  return error instanceof SandboxerError && error.details["local_copy"] === true;
}

export function isDamaged(error: unknown): error is SandboxerError {
  return error instanceof SandboxerError && error.code === "image_damaged";
}

/** For a read that then has nothing to say. */
export function nothingIfDamaged(error: unknown): undefined {
  if (!isDamaged(error)) throw error;
}

export function isMissing(error: unknown): boolean {
  return isDamaged(error) && error.details["problem"] === "missing";
}
