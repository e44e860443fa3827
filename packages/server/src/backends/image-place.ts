import { realpath } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";

export interface ImagePlaces {
  /** Images that the operator configured, wherever they are. */
  readonly trustedImages: readonly string[];
  /** Folders for a client's `dir:`, `tar:` and `oci:` images: any other path would expose the host's files inside. */
  readonly imageDirectories: readonly string[];
}

/** Refuses an image of a client that is a path outside of the image folders. */
export async function checkImagePlace(image: string, path: string, places: ImagePlaces): Promise<void> {
  if (places.trustedImages.includes(image)) return;
  // Programs that read it may resolve `..` literally, past a missing folder.
  const place = await realpath(path).catch(() => resolve(path));
  for (const directory of places.imageDirectories) {
    const allowed = await realpath(directory).catch(() => directory);
    if (place.startsWith(allowed.endsWith(sep) ? allowed : allowed + sep)) return;
  }
  throw new SandboxerError("permission_denied", `The image ${image} is outside the server's image folders.`, {
    hint: `Put it into ${places.imageDirectories.join(" or ")}, or start the server with --image ${image}.`,
  });
}
