import { createHash, randomUUID } from "node:crypto";
import { accessSync, constants, createReadStream, statSync } from "node:fs";
import { chmod, copyFile, mkdir, rename, rm } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { syncPath } from "../support/replace-file.ts";

export async function hashFile(path: string, algorithm: "sha256" | "sha512" = "sha256"): Promise<string> {
  const hash = createHash(algorithm);
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash);
  return hash.digest("hex");
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

export function findProgram(name: string, searchPath: string): string | undefined {
  return searchPath
    .split(delimiter)
    .filter((directory) => directory !== "")
    .map((directory) => join(directory, name))
    .find(isExecutable);
}

/** Readers see no file or the complete file, even after a crash. */
export async function installFile(source: string, target: string, mode: number): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const temporary = `${target}.${randomUUID()}.new`;
  try {
    await copyFile(source, temporary, constants.COPYFILE_FICLONE);
    await chmod(temporary, mode);
    await syncPath(temporary);
    await rename(temporary, target);
  } finally {
    await rm(temporary, { force: true });
  }
}
