import { constants } from "node:fs";
import {
  chmod,
  copyFile,
  link,
  lstat,
  mkdir,
  readdir,
  readlink,
  rename,
  rm,
  symlink,
  lutimes,
  lchown,
  utimes,
  chown,
} from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "../../support/errno.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import { FILES_FOLDER, type LayerRecord } from "./layer-record.ts";

/** Sandboxes have other filesystems there; the engine would create missing ones, and change the folder's time. */
const MOUNT_POINTS = ["dev", "proc", "sys", "tmp", "run", ".sandboxer"];
/** gVisor compares the times of open files, so that those made here must be the same everywhere. */
const FIXED_TIME = new Date("2000-01-01T00:00:00Z");
const AT_ONCE = 8;

export interface Layer {
  readonly folder: string;
  readonly record: LayerRecord;
}

/**
 * Stacks layers, lowest first, into a new folder: completely or not at all. Its files are hard links to those of the
 * layers, so that they take no more space, and nothing has to be mounted. Nobody writes to either.
 *
 * Names come from images. Each is reached through folders that were found to be folders, never through a link.
 */
export async function stackLayers(layers: readonly Layer[], target: string): Promise<void> {
  const building = `${target}.${process.pid}.${Math.random().toString(36).slice(2)}.tmp`;
  await mkdir(building, { recursive: true });
  try {
    const root = Buffer.from(building);
    for (const { folder, record } of layers) {
      for (const path of record.opaque) await hideLower(root, path);
      for (const path of record.whiteouts) await whiteOut(root, path);
      const implicit = new Set(record.implicit);
      await linkFolder(Buffer.from(join(folder, FILES_FOLDER)), root, "", implicit);
    }
    for (const name of MOUNT_POINTS) await makeMountPoint(join(building, name), name === "tmp" ? 0o1777 : 0o755);
    await chmod(building, 0o755);
    await utimes(building, FIXED_TIME, FIXED_TIME);
    await rename(building, target);
  } finally {
    await rm(building, { recursive: true, force: true });
  }
}

/** Links the content of a layer's folder into an existing folder. Paths are latin1. */
async function linkFolder(from: Buffer, to: Buffer, path: string, implicit: ReadonlySet<string>): Promise<void> {
  const entries = await readdir(from, { withFileTypes: true, encoding: "buffer" });
  await mapAtOnce(entries, AT_ONCE, async (entry) => {
    const [source, target] = [below(from, entry.name), below(to, entry.name)];
    if (!entry.isDirectory()) return linkFile(source, target, entry.isSymbolicLink());
    const inside = path === "" ? entry.name.toString("latin1") : `${path}/${entry.name.toString("latin1")}`;
    const isNew = await makeFolder(target);
    const before = await lstat(target);
    await linkFolder(source, target, inside, implicit);
    if (!implicit.has(inside)) return copyAttributes(source, target);
    return isNew ? utimes(target, FIXED_TIME, FIXED_TIME) : utimes(target, before.atime, before.mtime);
  });
}

/** Whether it is new. Anything else of the name is replaced. */
async function makeFolder(path: Buffer): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o755 });
    return true;
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
  if ((await lstat(path)).isDirectory()) return false;
  await rm(path, { force: true });
  await mkdir(path, { mode: 0o755 });
  return true;
}

async function linkFile(source: Buffer, target: Buffer, isSymlink: boolean): Promise<void> {
  const make = async (): Promise<void> => {
    try {
      await link(source, target);
    } catch (error) {
      // Some filesystems have no hard links, or no more for this file.
      if (!hasCode(error, "EPERM", "EMLINK", "ENOTSUP", "EXDEV")) throw error;
      await copy(source, target, isSymlink);
    }
  };
  try {
    await make();
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
    await rm(target, { recursive: true, force: true });
    await make();
  }
}

async function copy(source: Buffer, target: Buffer, isSymlink: boolean): Promise<void> {
  const info = await lstat(source);
  if (isSymlink) await symlink(await readlink(source, "buffer"), target);
  else await copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  await lchown(target, info.uid, info.gid).catch(() => {});
  if (!isSymlink) await chmod(target, info.mode & 0o7777);
  await lutimes(target, info.atime, info.mtime);
}

async function copyAttributes(source: Buffer, target: Buffer): Promise<void> {
  const { uid, gid, mode, atime, mtime } = await lstat(source);
  // Only root can give files away; others unpack as themselves.
  await chown(target, uid, gid).catch((error: unknown) => {
    if (!hasCode(error, "EPERM")) throw error;
  });
  await chmod(target, mode & 0o7777);
  await utimes(target, atime, mtime);
}

/** A whiteout of something that is not there does nothing. */
async function whiteOut(root: Buffer, path: string): Promise<void> {
  const slash = path.lastIndexOf("/");
  const folder = await realFolder(root, path.slice(0, Math.max(0, slash)));
  if (folder !== undefined) await removeFrom(folder, [Buffer.from(path.slice(slash + 1), "latin1")]);
}

async function hideLower(root: Buffer, path: string): Promise<void> {
  const folder = await realFolder(root, path);
  if (folder !== undefined) await removeFrom(folder, await readdir(folder, { encoding: "buffer" }));
}

/** The folder keeps its time. */
async function removeFrom(folder: Buffer, names: readonly Buffer[]): Promise<void> {
  const { atime, mtime } = await lstat(folder);
  for (const name of names) await rm(below(folder, name), { recursive: true, force: true });
  await utimes(folder, atime, mtime);
}

/** The folder at a path, if every part of it is a folder and not a link. */
async function realFolder(root: Buffer, path: string): Promise<Buffer | undefined> {
  let folder = root;
  for (const part of path === "" ? [] : path.split("/")) {
    folder = below(folder, Buffer.from(part, "latin1"));
    const info = await lstat(folder).catch(() => undefined);
    if (info?.isDirectory() !== true) return undefined;
  }
  return folder;
}

async function makeMountPoint(path: string, mode: number): Promise<void> {
  if (!(await makeFolder(Buffer.from(path)))) return;
  await chmod(path, mode);
  await utimes(path, FIXED_TIME, FIXED_TIME);
}

function below(folder: Buffer, name: Buffer): Buffer {
  return Buffer.concat([folder, Buffer.from("/"), name]);
}
