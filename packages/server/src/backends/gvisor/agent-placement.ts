import { createHash } from "node:crypto";
import { chmod, mkdir, readFile, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";

export const AGENT_NAME = "sandboxer-agent";
/**
 * gVisor compares the times of files that were open when an image was saved; the agent's time is the same everywhere.
 */
const FIXED_TIME = new Date("2000-01-01T00:00:00Z");

export interface PlacedAgent {
  /** Mounted into the sandbox. */
  readonly directory: string;
  readonly path: string;
  readonly sha256: string;
}

/** Puts an agent binary where sandboxes mount it, under its digest. */
export async function placeAgent(source: string, cacheDirectory: string): Promise<PlacedAgent> {
  const content = await readFile(source);
  return place(content, createHash("sha256").update(content).digest("hex"), cacheDirectory);
}

/**
 * The agent of an image: a restored sandbox needs the exact binary that was saved, so agents of other servers are kept
 * here too. An existing one is not read again.
 */
export async function placeSavedAgent(source: string, sha256: string, cacheDirectory: string): Promise<PlacedAgent> {
  if (!/^[0-9a-f]{64}$/.test(sha256)) throw new SandboxerError("image_damaged", "The image names no agent.");
  const placed = placeOf(sha256, cacheDirectory);
  if ((await sizeOf(placed.path)) === (await sizeOf(source))) return placed;
  const content = await readFile(source);
  if (createHash("sha256").update(content).digest("hex") === sha256) return place(content, sha256, cacheDirectory);
  throw new SandboxerError("image_damaged", "The agent in the image is not the one that was saved.");
}

async function place(content: Uint8Array, sha256: string, cacheDirectory: string): Promise<PlacedAgent> {
  const placed = placeOf(sha256, cacheDirectory);
  // After a power failure the file may be truncated.
  if ((await sizeOf(placed.path)) === content.length) return placed;
  await mkdir(placed.directory, { recursive: true });
  const copy = `${placed.path}.${process.pid}.${Math.random().toString(36).slice(2)}`;
  await writeFile(copy, content);
  await chmod(copy, 0o555);
  await utimes(copy, FIXED_TIME, FIXED_TIME);
  await rename(copy, placed.path);
  return placed;
}

function placeOf(sha256: string, cacheDirectory: string): PlacedAgent {
  const directory = join(cacheDirectory, "placed-agents", sha256);
  return { directory, path: join(directory, AGENT_NAME), sha256 };
}

async function sizeOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(() => undefined))?.size;
}
