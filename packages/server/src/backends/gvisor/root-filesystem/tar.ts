import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, mkdir, rename, rm, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { RootFilesystem } from "./root-filesystem.ts";

const execFileAsync = promisify(execFile);

/** A tar archive as `/`, unpacked once into the cache under its digest. */
export async function tarRootFilesystem(image: string, path: string, cacheDirectory: string): Promise<RootFilesystem> {
  if (!isAbsolute(path)) throw new SandboxerError("bad_request", `The image ${image} needs an absolute path.`);
  const info = await stat(path).catch(() => undefined);
  if (info === undefined || !info.isFile()) {
    throw new SandboxerError("bad_request", `The image ${image} does not name a file on the server.`);
  }
  const digest = await fileDigest(path);
  const unpacked = join(cacheDirectory, `tar-${digest.slice(0, 32)}`);
  await unpackOnce(unpacked, image, (into) =>
    execFileAsync("tar", ["-x", "-p", "--numeric-owner", "-f", path, "-C", into]),
  );
  return { image, path: unpacked, mounts: [], identity: { kind: "tar", digest, parts: { sha256: digest } } };
}

/** Fills `target` by `fill`, atomically, even if others do the same. */
export async function unpackOnce(
  target: string,
  image: string,
  fill: (into: string) => Promise<unknown>,
): Promise<void> {
  if ((await lstat(target).catch(() => undefined)) !== undefined) return;
  const building = `${target}.${process.pid}.${Math.random().toString(36).slice(2)}.tmp`;
  await mkdir(building, { recursive: true });
  try {
    await fill(building);
    await rename(building, target).catch(async (error: unknown) => {
      if ((await lstat(target).catch(() => undefined)) === undefined) throw error;
    });
  } catch (error) {
    const reason = asSandboxerError(error);
    if (reason.code === "no_space" || /no space left/i.test(reason.message)) {
      throw new SandboxerError("no_space", `No space left to unpack the image ${image}.`, { cause: error });
    }
    throw new SandboxerError("bad_request", `The image ${image} could not be unpacked: ${reason.message}`, {
      cause: error,
    });
  } finally {
    await rm(building, { recursive: true, force: true });
  }
}

async function fileDigest(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest("hex");
}
