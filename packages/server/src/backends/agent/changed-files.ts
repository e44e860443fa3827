import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { beginAhead } from "../../support/begin-ahead.ts";
import type { AgentFileEntry, AgentFiles } from "./agent-files.ts";
import { AGENT_FOLDER } from "./agent-place.ts";

/** Not part of a sandbox's files: what the kernel shows, and what is new at each start. */
const SKIPPED = new Set(["/proc", "/sys", "/dev", "/run", AGENT_FOLDER, "/etc/machine-id"]);
/** Memory that lives on a filesystem of its own, but that users think of as files. */
const EXTRA_ROOTS = ["/tmp"];
/** What is listed comes from inside, where somebody may have taken over the agent that lists it. */
const NO_NAME = /^\.{0,2}$|[/\0]/;
/** Of the system inside: nothing below a longer path can be asked for. */
const MAX_PATH_CHARACTERS = 4096;
const FOLDERS_AHEAD = 4;
const LOOKS_AHEAD = 32;

/** What a sandbox has made of a file of its root filesystem; without an entry it has removed it. */
export interface ChangedFile {
  readonly path: string;
  readonly entry: AgentFileEntry | undefined;
}

interface Walk {
  readonly files: AgentFiles;
  /** Absent where there was nothing before. */
  readonly basePath: string | undefined;
  /** Other filesystems are folders with another device; a file's device says only which layer it is on. */
  readonly device: bigint;
}

/** Everything in a sandbox that is not as in its root filesystem, which is in `basePath`; folders before what they hold. */
export async function* changedFiles(files: AgentFiles, basePath: string): AsyncGenerator<ChangedFile, void, undefined> {
  for (const folder of ["/", ...EXTRA_ROOTS]) {
    const { device } = await files.stat(folder);
    const walk: Walk = { files, device, basePath: folder === "/" ? basePath : undefined };
    yield* changesBelow(walk, { path: folder, entries: await files.list(folder) });
  }
}

interface ListedFolder {
  readonly path: string;
  readonly entries: readonly AgentFileEntry[];
}

/** Not by recursion: each change would be handed up through all folders above it, and whoever is inside makes many. */
async function* changesBelow(walk: Walk, top: ListedFolder): AsyncGenerator<ChangedFile, void, undefined> {
  const list = async (path: string): Promise<ListedFolder> => ({ path, entries: await walk.files.list(path) });
  const levels: AsyncGenerator<ListedFolder, void, undefined>[] = [];
  for (let folder: ListedFolder | undefined = top; folder !== undefined; folder = await nextOf(levels)) {
    const folders: string[] = [];
    for await (const { path, entry, unchanged } of lookedAt(walk, folder)) {
      if (!unchanged) yield { path, entry };
      if (entry.kind === "folder") folders.push(path);
    }
    if (walk.basePath !== undefined) yield* removals(walk.basePath, folder);
    levels.push(beginAhead(folders, FOLDERS_AHEAD, list));
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
    return { path, entry, unchanged: basePath !== undefined && (await isUnchanged(entry, join(basePath, path))) };
  };
  for await (const found of beginAhead(folder.entries, LOOKS_AHEAD, look)) if (found !== undefined) yield found;
}

interface LookedAt {
  readonly path: string;
  readonly entry: AgentFileEntry;
  readonly unchanged: boolean;
}

async function isUnchanged(entry: AgentFileEntry, basePath: string): Promise<boolean> {
  const base = await lstat(basePath, { bigint: true }).catch(() => undefined);
  if (base === undefined) return false;
  const sameOwner = Number(base.uid) === entry.uid && Number(base.gid) === entry.gid;
  if (!sameOwner || Number(base.mode & 0o7777n) !== (entry.mode & 0o7777)) return false;
  if (entry.kind === "folder") return base.isDirectory();
  // A rewritten file has another time, down to the nanosecond; a link cannot be changed, only replaced.
  return Number(base.size) === entry.sizeBytes && base.mtimeNs === entry.modifiedNs && kindOf(base) === entry.kind;
}

function kindOf(base: { isFile(): boolean; isSymbolicLink(): boolean }): AgentFileEntry["kind"] {
  if (base.isFile()) return "file";
  return base.isSymbolicLink() ? "symlink" : "other";
}

async function* removals(
  basePath: string,
  { path: folder, entries }: ListedFolder,
): AsyncGenerator<ChangedFile, void, undefined> {
  const present = new Set(entries.map(({ name }) => name));
  for (const name of await readdir(join(basePath, folder)).catch(() => [])) {
    const path = join(folder, name);
    if (!present.has(name) && !SKIPPED.has(path)) yield { path, entry: undefined };
  }
}

function pathOf(folder: string, { name }: AgentFileEntry): string {
  if (NO_NAME.test(name)) {
    const text = `The sandbox says that ${folder} holds ${JSON.stringify(name.slice(0, 200))}, which is no name of a file.`;
    throw new SandboxerError("sandbox_failed", text, { hint: "Do not trust what is inside.", details: { folder } });
  }
  const path = join(folder, name);
  if (path.length <= MAX_PATH_CHARACTERS) return path;
  throw new SandboxerError("too_large", `The path ${path.slice(0, 200)}… is too long to be read.`, {
    hint: "Remove folders that are so deep, or move them up.",
  });
}
