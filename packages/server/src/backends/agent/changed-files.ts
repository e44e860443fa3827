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

/** Not part of a sandbox's files: what the kernel shows, and what is new at each start. */
const SKIPPED = new Set(["/proc", "/sys", "/dev", "/run", AGENT_FOLDER, "/etc/machine-id"]);
/** Memory that lives on a filesystem of its own, but that users think of as files. */
const EXTRA_ROOTS = ["/tmp"];
/** What is listed comes from inside, where somebody may have taken over the agent that lists it. */
const NO_NAME = /^\.{0,2}$|[/\0]/;
/** Of the system inside: nothing below a longer path can be asked for. */
const MAX_PATH_BYTES = 4096;
/** A listing may be large, and each level keeps what it has listed ahead: only the first levels do. */
const FOLDERS_AHEAD = 2;
const LEVELS_AHEAD = 8;
const LOOKS_AHEAD = 32;

/** What a sandbox has made of a file of its root filesystem; without an entry that is removed. */
export interface ChangedFile {
  readonly path: string;
  readonly entry: AgentFileEntry | undefined;
}

interface Walk {
  readonly files: AgentFiles;
  readonly basePath: string;
  /** Other filesystems are folders with another device; a file's device says only which layer it is on. */
  readonly device: bigint;
}

/**
 * Everything in a sandbox that is not as in its root filesystem, which is in `basePath`; folders before what they hold,
 * and a removal before what has taken the place of something of another kind. Each character of a path is one byte.
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
  /** It is a folder there too, and so are all above it: no link on the host is followed. */
  readonly inBase: boolean;
}

interface ListedFolder extends Folder {
  readonly entries: readonly AgentFileEntry[];
}

/** Not by recursion: each change would be handed up through all folders above it, and whoever is inside makes many. */
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

/** How a name in the root filesystem compares with the sandbox; `unchanged` and `changed` imply the same kind of file. */
type BaseState = "none" | "unchanged" | "changed" | "another kind";

/**
 * Looks at the root filesystem, which is in `basePath` on the host, without following a link in its place. Each
 * character of a path inside is one byte. The folder that holds it must be known to be one.
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
