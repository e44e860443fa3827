import { createHash } from "node:crypto";
import { lstat, opendir, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { RootFilesystem, RootFilesystemIdentity } from "./root-filesystem.ts";

/** A folder of this machine as `/`. It must not change while sandboxes use it or images need it. */
export async function directoryRootFilesystem(image: string, path: string): Promise<RootFilesystem> {
  if (!isAbsolute(path)) throw new SandboxerError("bad_request", `The image ${image} needs an absolute path.`);
  const info = await stat(path).catch(() => undefined);
  if (info === undefined || !info.isDirectory()) {
    throw new SandboxerError("bad_request", `The image ${image} names no folder on the server.`);
  }
  return { image, path, mounts: [], identity: await treeIdentity("dir", path) };
}

/**
 * Names, kinds, modes, owners, sizes and times of everything in the tree. A copy that keeps times has the same
 * identity, so that an image moves to another machine with its root filesystem.
 */
export async function treeIdentity(kind: string, root: string): Promise<RootFilesystemIdentity> {
  const hash = createHash("sha256");
  let entries = 0;
  const walk = async (folder: string): Promise<void> => {
    const names: string[] = [];
    for await (const entry of await opendir(join(root, folder))) names.push(entry.name);
    for (const name of names.toSorted()) {
      const relative = `${folder}/${name}`;
      const info = await lstat(join(root, relative));
      // A folder's size and time depend on the filesystem and on mount points made in it.
      const content = info.isDirectory() ? "" : `${info.size} ${Math.floor(info.mtimeMs / 1000)}`;
      hash.update(`${relative}\0${info.mode} ${info.uid} ${info.gid} ${content}\n`);
      entries += 1;
      if (info.isDirectory()) await walk(relative);
    }
  };
  await walk("");
  return { kind, digest: hash.digest("hex"), parts: { entries: String(entries) } };
}
