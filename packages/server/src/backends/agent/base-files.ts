import { Buffer } from "node:buffer";
import { lstat, readdir } from "node:fs/promises";
import type { BigIntStats } from "node:fs";
import { toBytes } from "./byte-names.ts";
import type { AgentFileEntry } from "./file-entry.ts";

/** What the root filesystem has under a name; `unchanged` and `changed` are of the same kind as what is inside. */
export type BaseState = "none" | "unchanged" | "changed" | "another kind";

/**
 * Looks at the root filesystem, which is in `basePath` on the host, without following a link in its place. Each
 * character of a path inside is one byte. The folder that holds it must be known to be one.
 */
export async function compareWithBase(entry: AgentFileEntry, basePath: string, path: string): Promise<BaseState> {
  const base = await lstat(onHost(basePath, path), { bigint: true }).catch(() => undefined);
  if (base === undefined) return "none";
  if (kindOf(base) !== entry.kind) return "another kind";
  return isUnchanged(entry, base) ? "unchanged" : "changed";
}

/** The names in a folder that is known to be one. */
export async function namesInBase(basePath: string, folder: string): Promise<readonly string[]> {
  return readdir(onHost(basePath, folder), { encoding: "latin1" }).catch(() => []);
}

function isUnchanged(entry: AgentFileEntry, base: BigIntStats): boolean {
  const sameOwner = Number(base.uid) === entry.uid && Number(base.gid) === entry.gid;
  if (!sameOwner || Number(base.mode & 0o7777n) !== (entry.mode & 0o7777)) return false;
  if (entry.kind === "folder") return true;
  // A rewritten file has another time, down to the nanosecond; a link cannot be changed, only replaced.
  return Number(base.size) === entry.sizeBytes && base.mtimeNs === entry.modifiedNs;
}

function kindOf(base: BigIntStats): AgentFileEntry["kind"] {
  if (base.isFile()) return "file";
  if (base.isDirectory()) return "folder";
  return base.isSymbolicLink() ? "symlink" : "other";
}

function onHost(basePath: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(basePath), toBytes(path)]);
}
