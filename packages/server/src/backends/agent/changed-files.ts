import { join } from "node:path";
import { Buffer } from "node:buffer";
import { lstat, readdir } from "node:fs/promises";
import type { BigIntStats } from "node:fs";
import { SandboxerError } from "@sandboxer/protocol";
import { beginAhead } from "../../support/begin-ahead.ts";
import type { AgentFiles } from "./agent-files.ts";
import { AGENT_FOLDER } from "./agent-place.ts";
import { readable, toBytes } from "./byte-names.ts";
import type { AgentFileEntry } from "./file-entry.ts";

/** Not part of a sandbox's files: kernel filesystems, and what is new at each start. */
const SKIPPED = new Set(["/proc", "/sys", "/dev", "/run", AGENT_FOLDER, "/etc/machine-id"]);
/** In-memory filesystems that users treat as files. */
const EXTRA_ROOTS = ["/tmp"];
/** The list comes from inside, where the agent may be compromised. */
const NO_NAME = /^\.{0,2}$|[/\0]/;
/** The path limit of the system inside: nothing below a longer path can be requested. */
const MAX_PATH_BYTES = 4096;
/** A listing may be large, and each level keeps its listing in memory: only the first levels read ahead. */
const FOLDERS_AHEAD = 2;
const LEVELS_AHEAD = 8;
const LOOKS_AHEAD = 32;

/** A change to a file of the root filesystem; without an entry it was removed. */
export interface ChangedFile {
  readonly path: string;
  readonly entry: AgentFileEntry | undefined;
}

interface Walk {
  readonly files: AgentFiles;
  readonly basePath: string;
  /** Other filesystems are folders with another device; a file's device only shows its layer. */
  readonly device: bigint;
}

/**
 * Everything in a sandbox that differs from its root filesystem in `basePath`; folders before their contents, and a
 * removal before a replacement of another kind. Each character of a path is one byte.
 */
export async function* changedFiles(files: AgentFiles, basePath: string): AsyncGenerator<ChangedFile, void, undefined> {
  for (const path of ["/", ...EXTRA_ROOTS]) {
    const { device } = await files.stat(path);
    const entries = await files.list(path);
    yield* changesBelow({ files, basePath, device }, { path, inBase: path === "/", entries });
  }
}

interface Folder {
  readonly path: string;
  /** It is a folder there too, and so are all its parents: no link on the host is followed. */
  readonly inBase: boolean;
}

interface ListedFolder extends Folder {
  readonly entries: readonly AgentFileEntry[];
}

/** Not recursive: each change would pass through all parent folders, and a sandbox can make many. */
async function* changesBelow(walk: Walk, top: ListedFolder): AsyncGenerator<ChangedFile, void, undefined> {
  const list = async (folder: Folder): Promise<ListedFolder> => ({
    ...folder,
    entries: await walk.files.list(folder.path),
  });
  const levels: AsyncGenerator<ListedFolder, void, undefined>[] = [];
  for (let folder: ListedFolder | undefined = top; folder !== undefined; folder = await nextOf(levels)) {
    const folders: Folder[] = [];
    for await (const { path, entry, base } of lookedAt(walk, folder)) {
      if (base === "another kind") yield { path, entry: undefined };
      if (base !== "unchanged") yield { path, entry };
      if (entry.kind === "folder") folders.push({ path, inBase: base === "unchanged" || base === "changed" });
    }
    if (folder.inBase) yield* removals(walk.basePath, folder);
    levels.push(beginAhead(folders, levels.length < LEVELS_AHEAD ? FOLDERS_AHEAD : 1, list));
  }
}

async function nextOf(levels: AsyncGenerator<ListedFolder, void, undefined>[]): Promise<ListedFolder | undefined> {
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    const { value } = await level.next();
    if (value !== undefined) return value;
    levels.pop();
  }
  return undefined;
}

async function* lookedAt({ basePath, device }: Walk, folder: ListedFolder): AsyncGenerator<LookedAt, void, undefined> {
  const look = async (entry: AgentFileEntry): Promise<LookedAt | undefined> => {
    const path = pathOf(folder.path, entry);
    if (SKIPPED.has(path) || (entry.kind === "folder" && entry.device !== device)) return undefined;
    return { path, entry, base: folder.inBase ? await compareWithBase(entry, basePath, path) : "none" };
  };
  for await (const found of beginAhead(folder.entries, LOOKS_AHEAD, look)) if (found !== undefined) yield found;
}

interface LookedAt {
  readonly path: string;
  readonly entry: AgentFileEntry;
  readonly base: BaseState;
}

async function* removals(
  basePath: string,
  { path: folder, entries }: ListedFolder,
): AsyncGenerator<ChangedFile, void, undefined> {
  const present = new Set(entries.map(({ name }) => name));
  for (const name of await namesInBase(basePath, folder)) {
    const path = join(folder, name);
    if (!present.has(name) && !SKIPPED.has(path)) yield { path, entry: undefined };
  }
}

function pathOf(folder: string, { name }: AgentFileEntry): string {
  if (NO_NAME.test(name)) {
    const [where, what] = [readable(folder), JSON.stringify(readable(name.slice(0, 200)))];
    throw new SandboxerError(
      "sandbox_failed",
      `The sandbox reports that ${where} contains ${what}, which is not a valid file name.`,
      {
        hint: "Do not trust the contents of this sandbox.",
        details: { folder: where },
      },
    );
  }
  const path = join(folder, name);
  if (path.length <= MAX_PATH_BYTES) return path;
  throw new SandboxerError("too_large", `The path ${readable(path.slice(0, 200))}… is too long to be read.`, {
    hint: "Remove deeply nested folders, or move them up.",
  });
}

/**
 * How a name in the root filesystem compares with the sandbox; `unchanged` and `changed` imply the same kind of file.
 */
type BaseState = "none" | "unchanged" | "changed" | "another kind";

/**
 * Reads the root filesystem in `basePath` on the host, without following links. Each character of a path inside is one
 * byte. The containing folder must be known to be a folder.
 */
async function compareWithBase(entry: AgentFileEntry, basePath: string, path: string): Promise<BaseState> {
  const base = await lstat(onHost(basePath, path), { bigint: true }).catch(() => undefined);
  if (base === undefined) return "none";
  if (kindOf(base) !== entry.kind) return "another kind";
  return isUnchanged(entry, base) ? "unchanged" : "changed";
}

/** The names in a folder that is known to be one. */
async function namesInBase(basePath: string, folder: string): Promise<readonly string[]> {
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
