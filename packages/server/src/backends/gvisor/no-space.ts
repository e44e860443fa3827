import { statfs } from "node:fs/promises";
import { SandboxerError } from "@sandboxer/protocol";

/** Less than any file of a saved state needs to continue. */
const NOTHING_LEFT_BYTES = 1024 * 1024;

/** When the disk fills up in the middle of a file, runsc 20240729 fails with a nil pointer, and does not say why. */
export async function hasNoSpace(folder: string): Promise<boolean> {
  const volume = await statfs(folder).catch(() => undefined);
  return volume !== undefined && volume.bavail * volume.bsize < NOTHING_LEFT_BYTES;
}

export function noSpaceFor(folder: string, cause: unknown): SandboxerError {
  return new SandboxerError("no_space", `No space left on the device to save the sandbox (${folder}).`, { cause });
}
