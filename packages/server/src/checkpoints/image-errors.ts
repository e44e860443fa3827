import { SandboxerError } from "@sandboxer/protocol";

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

export function imageMissing(image: string): SandboxerError {
  return new SandboxerError("image_damaged", `The image ${image} is not in the store.`, {
    details: { image, problem: "missing" },
  });
}

export function isMissing(error: unknown): boolean {
  return error instanceof SandboxerError && error.code === "image_damaged" && error.details["problem"] === "missing";
}
