import { createHash } from "node:crypto";
import { lstat, readdir, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { AGENT_FOLDER } from "../../agent/agent-place.ts";
import type { RootFilesystem, RootFilesystemIdentity } from "./root-filesystem.ts";

/** A folder of this machine as `/`. It must not change while sandboxes use it or images need it. */
export async function directoryRootFilesystem(image: string, path: string): Promise<RootFilesystem> {
  if (!isAbsolute(path)) throw new SandboxerError("bad_request", `The image ${image} needs an absolute path.`);
  const info = await stat(path).catch(() => undefined);
  if (info === undefined || !info.isDirectory()) {
    throw new SandboxerError("bad_request", `The image ${image} does not name a folder on the server.`);
  }
  return { image, path, mounts: [], identity: await treeIdentity("dir", path) };
}

/** Sandboxes see other filesystems there; gVisor creates missing mount points. */
const MOUNT_POINTS = new Set(["/proc", "/dev", "/sys", "/tmp", "/run", AGENT_FOLDER]);

/**
 * Names, kinds, modes, owners, sizes and times of everything in the tree. A copy that keeps times has the same
 * identity, so that an image can move to another machine with its root filesystem.
 */
export async function treeIdentity(kind: string, root: string): Promise<RootFilesystemIdentity> {
  const parts: Record<string, string> = {};
  const names = (await readdir(root)).filter((name) => !MOUNT_POINTS.has(`/${name}`)).toSorted();
  for (const name of names) parts[`/${name}`] = await describeTree(root, `/${name}`);
  const digest = createHash("sha256")
    .update(JSON.stringify(Object.entries(parts)))
    .digest("hex");
  return { kind, digest, parts };
}

async function describeTree(root: string, top: string): Promise<string> {
  const hash = createHash("sha256");
  let entries = 0;
  const visit = async (path: string): Promise<void> => {
    const info = await lstat(join(root, path));
    // A folder's size and time depend on the filesystem and on mount points created in it.
    const content = info.isDirectory() ? "" : `${info.size} ${Math.floor(info.mtimeMs / 1000)}`;
    hash.update(`${path}\0${info.mode} ${info.uid} ${info.gid} ${content}\n`);
    entries += 1;
    if (!info.isDirectory()) return;
    for (const name of (await readdir(join(root, path))).toSorted()) await visit(`${path}/${name}`);
  };
  await visit(top);
  return `${entries} ${entries === 1 ? "entry" : "entries"} with digest ${hash.digest("hex").slice(0, 16)}`;
}
