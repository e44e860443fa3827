import { SandboxerError } from "@sandboxer/protocol";

/** An image that cannot be used, named with what is wrong with it. */
export function imageDamaged(image: string, problem: string, member?: string): SandboxerError {
  const where = member === undefined ? "" : `, member "${member}"`;
  return new SandboxerError("image_damaged", `The image ${image}${where}: ${problem}.`, {
    details: { image, member, problem },
  });
}

export function imageMissing(image: string): SandboxerError {
  return new SandboxerError("image_damaged", `The image ${image} is not in the store.`, {
    details: { image, problem: "missing" },
  });
}
