import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, readFile, rename, stat, utimes } from "node:fs/promises";
import { join } from "node:path";

export const AGENT_NAME = "sandboxer-agent";
/** gVisor compares the times of files that were open when an image was made; the agent's is the same everywhere. */
const FIXED_TIME = new Date("2000-01-01T00:00:00Z");

export interface PlacedAgent {
  /** Mounted into the sandbox. */
  readonly directory: string;
  readonly path: string;
  readonly sha256: string;
}

/**
 * Puts an agent program where sandboxes mount it, under its digest. A restored sandbox needs the very agent that was
 * saved, so agents of other servers end up here too.
 */
export async function placeAgent(source: string, cacheDirectory: string): Promise<PlacedAgent> {
  const sha256 = createHash("sha256")
    .update(await readFile(source))
    .digest("hex");
  const directory = join(cacheDirectory, "placed-agents", sha256);
  const path = join(directory, AGENT_NAME);
  if ((await stat(path).catch(() => undefined)) === undefined) {
    await mkdir(directory, { recursive: true });
    const copy = `${path}.${process.pid}.${Math.random().toString(36).slice(2)}`;
    await copyFile(source, copy);
    await chmod(copy, 0o555);
    await utimes(copy, FIXED_TIME, FIXED_TIME);
    await rename(copy, path);
  }
  return { directory, path, sha256 };
}
