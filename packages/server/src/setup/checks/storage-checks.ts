import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { link, rm, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Check } from "./check.ts";

const ENOUGH_BYTES = 2 * 1024 ** 3;

export const checkDiskSpace: Check = async ({ dataDirectory }) => {
  const directory = nearestExisting(dataDirectory);
  const { bavail, bsize } = await statfs(directory);
  const freeBytes = bavail * bsize;
  const base = { name: "disk space", needed: true, version: `${(freeBytes / 1024 ** 3).toFixed(1)} GiB` };
  if (freeBytes >= ENOUGH_BYTES) return { ...base, state: "found", message: `free at ${dataDirectory}` };
  return {
    ...base,
    state: "missing",
    message: `free at ${dataDirectory}; sandboxes and checkpoints need 2 GiB`,
    remedy: "Free space, or choose another folder with SANDBOXER_DATA_DIRECTORY.",
  };
};

/** A directory store publishes by hard link: an object is complete or absent, and nothing is overwritten. */
export const checkStore: Check = async ({ store, storeProblem }) => {
  const base = { name: "store", needed: true };
  if (store === undefined) {
    return {
      ...base,
      needed: false,
      state: "missing",
      message: "none given: no checkpoints",
      remedy: "sandboxer serve --store PATH",
    };
  }
  if (/^[a-z0-9]+:\/\//.test(store))
    return { ...base, state: "unknown", message: `${store} is tested when the server starts` };
  // A folder whose store is missing is a missing mount, however writable it is.
  if (storeProblem !== undefined)
    return { ...base, state: "missing", message: storeProblem.message, remedy: storeProblem.hint };
  const directory = nearestExisting(store);
  const probe = join(directory, `.sandboxer-doctor-${randomUUID()}`);
  try {
    await writeFile(probe, "");
    await link(probe, `${probe}.link`);
    return { ...base, state: "found", message: `${store} is writable, with hard links` };
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code ?? "error";
    return {
      ...base,
      state: "missing",
      message: `${store}: ${code} while writing and linking in ${directory}`,
      remedy: "Make it writable, or choose a folder on a file system with hard links.",
    };
  } finally {
    await rm(`${probe}.link`, { force: true });
    await rm(probe, { force: true });
  }
};

/** Reports the consequences of the root filesystem for checkpoints. */
export const checkImage: Check = async ({ image = "host" }) => {
  const base = { name: "image", needed: false, state: "found", version: image } as const;
  if (image !== "host")
    return { ...base, message: "checkpoints need the same image; one from a registry is pulled by its digest" };
  return {
    ...base,
    message: "checkpoints need this system's packages as they are; with --image NAME they survive updates",
  };
};

function nearestExisting(path: string): string {
  let directory = path;
  while (!existsSync(directory)) directory = dirname(directory);
  return directory;
}
