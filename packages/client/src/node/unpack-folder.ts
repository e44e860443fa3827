import { constants } from "node:fs";
import { chmod, lstat, mkdir, open, rm, symlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { ByteReader } from "../tar/byte-reader.ts";
import { decodeHeader, paddingOf, type UnknownEntry } from "../tar/decode.ts";
import type { TarEntry } from "../tar/entry.ts";

export interface UnpackResult {
  /** Files and links. */
  readonly files: number;
  readonly bytes: number;
}

/**
 * Unpacks a tar archive from a sandbox, which may be hostile: nothing is written outside the folder, no link is
 * followed, and entries other than files, folders and symbolic links are refused. Existing files are replaced.
 */
export async function unpackFolder(tar: AsyncIterable<Uint8Array>, folder: string): Promise<UnpackResult> {
  await mkdir(folder, { recursive: true });
  const reader = new ByteReader(tar);
  /** Folders get their times and modes at the end: unpacking into them changes their times, and needs write access. */
  const folders: (() => Promise<void>)[] = [];
  let [files, bytes] = [0, 0];
  try {
    for (let entry = await decodeHeader(reader); entry !== undefined; entry = await decodeHeader(reader)) {
      const parts = safeParts(entry);
      if (parts.length > 0) {
        const finish = await unpackEntry(reader, entry, folder, parts);
        if (finish !== undefined) folders.push(finish);
        if (entry.kind !== "folder") [files, bytes] = [files + 1, bytes + entry.sizeBytes];
      }
      await reader.skip(paddingOf(entry.sizeBytes));
    }
    for (const finish of folders.toReversed()) await finish();
  } finally {
    await reader.close();
  }
  return { files, bytes };
}

async function unpackEntry(
  reader: ByteReader,
  entry: TarEntry | UnknownEntry,
  folder: string,
  parts: readonly string[],
): Promise<(() => Promise<void>) | undefined> {
  const path = join(folder, ...parts);
  await realFolder(folder, parts.slice(0, -1));
  const modified = new Date(entry.modifiedAtMs);
  switch (entry.kind) {
    case "folder":
      await realFolder(folder, parts);
      return async () => {
        // A later entry may have put a link in its place.
        if (!(await isRealFolder(folder, parts))) return;
        await chmod(path, entry.mode & 0o777);
        await utimes(path, modified, modified);
      };
    case "symlink":
      await rm(path, { recursive: true, force: true });
      await symlink(entry.linkTarget ?? "", path);
      return undefined;
    case "file": {
      await rm(path, { recursive: true, force: true });
      const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
      const file = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      try {
        for await (const piece of reader.pieces(entry.sizeBytes)) await file.writeFile(piece);
        // Setuid and setgid bits are dropped.
        await file.chmod(entry.mode & 0o777);
        await file.utimes(modified, modified);
      } finally {
        await file.close();
      }
      return undefined;
    }
    case "other":
      throw refused(entry.name, "it is not a file, folder or symbolic link");
  }
}

/** Creates the folders of a path, and ensures that none of them is a link. */
async function realFolder(root: string, parts: readonly string[]): Promise<void> {
  let path = root;
  for (const part of parts) {
    path = join(path, part);
    const facts = await lstat(path).catch(() => undefined);
    if (facts === undefined) await mkdir(path);
    else if (!facts.isDirectory()) {
      if (facts.isSymbolicLink()) throw refused(path, "a link is in its way");
      await rm(path);
      await mkdir(path);
    }
  }
}

async function isRealFolder(root: string, parts: readonly string[]): Promise<boolean> {
  let path = root;
  for (const part of parts) {
    path = join(path, part);
    const facts = await lstat(path).catch(() => undefined);
    if (facts?.isDirectory() !== true) return false;
  }
  return true;
}

function safeParts({ name }: TarEntry | UnknownEntry): string[] {
  if (name.startsWith("/") || name.includes("\0")) throw refused(name, "its path leads outside the folder");
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw refused(name, "its path leads outside the folder");
  return parts;
}

function refused(name: string, why: string): SandboxerError {
  return new SandboxerError("permission_denied", `"${name}" of the tar was not unpacked: ${why}.`, {
    hint: "Entries before it were unpacked. The sandbox may be trying to write outside the folder.",
  });
}
