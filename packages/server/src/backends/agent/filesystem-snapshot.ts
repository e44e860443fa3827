import { createReadStream, createWriteStream } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { extract, pack, type Header, type Pack } from "tar-stream";
import { errnoOf } from "./agent-error.ts";
import type { AgentFileEntry, AgentFiles } from "./agent-files.ts";
import { AGENT_FOLDER } from "./agent-place.ts";

/** Not part of a sandbox's files: what the kernel shows, and what is new at each start. */
const SKIPPED = new Set(["/proc", "/sys", "/dev", "/run", AGENT_FOLDER, "/etc/machine-id"]);
/** Marks a file of the root filesystem that the sandbox has removed, as container layers do. */
const WHITEOUT = ".wh.";
/** Memory that lives on a filesystem of its own, but that users think of as files. */
const EXTRA_ROOTS = ["/tmp"];

interface Saving {
  readonly files: AgentFiles;
  readonly archive: Pack;
  /** Rejects when the archive cannot be written. */
  readonly writing: Promise<void>;
  leftBytes: number;
}

/**
 * Writes what a sandbox has changed of its root filesystem as a tar archive, of at most so many bytes. It is read
 * through the agent, so that it needs nothing of the engine and can be loaded by any engine version.
 */
export async function saveFilesystem(
  files: AgentFiles,
  basePath: string,
  into: string,
  maxBytes: number,
): Promise<void> {
  const archive = pack();
  const writing = pipeline(archive, createWriteStream(into));
  writing.catch(() => {});
  const saving: Saving = { files, archive, writing, leftBytes: maxBytes };
  try {
    const root = await files.stat("/");
    await savePart(saving, basePath, "/", root.device);
    for (const extra of EXTRA_ROOTS) await savePart(saving, undefined, extra, (await files.stat(extra)).device);
    archive.finalize();
    await writing;
  } catch (error) {
    archive.destroy();
    throw error;
  }
}

async function savePart(saving: Saving, basePath: string | undefined, folder: string, device: bigint): Promise<void> {
  const entries = await saving.files.list(folder);
  for (const entry of entries) {
    const path = join(folder, entry.name);
    // Other filesystems are folders with another device; a file's device says only which layer it is on.
    if (SKIPPED.has(path) || (entry.kind === "folder" && entry.device !== device)) continue;
    const unchanged = basePath !== undefined && (await isUnchanged(entry, join(basePath, path)));
    if (!unchanged) await saveEntry(saving, path, entry);
    if (entry.kind === "folder") await savePart(saving, basePath, path, device);
  }
  if (basePath === undefined) return;
  await saveRemovals(saving.archive, basePath, folder, new Set(entries.map((entry) => entry.name)));
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

async function saveEntry(saving: Saving, path: string, entry: AgentFileEntry): Promise<void> {
  const { archive, files, writing } = saving;
  const header = {
    name: path.slice(1),
    mode: entry.mode & 0o7777,
    uid: entry.uid,
    gid: entry.gid,
    mtime: new Date(entry.modifiedMs),
  };
  if (entry.kind === "folder") return void archive.entry({ ...header, type: "directory" });
  if (entry.kind === "symlink")
    return void archive.entry({ ...header, type: "symlink", linkname: entry.linkTarget ?? "" });
  // Sockets and pipes mean nothing without the processes that use them.
  if (entry.kind !== "file") return;
  // A sparse file is larger than what it takes inside.
  saving.leftBytes -= entry.sizeBytes;
  if (saving.leftBytes < 0)
    throw new SandboxerError("too_large", `The sandbox's files are larger than its disk limit (${path}).`);
  const sink = archive.entry({ ...header, type: "file", size: entry.sizeBytes });
  for await (const chunk of files.read(path, { length: entry.sizeBytes })) {
    const drained = new Promise<void>((resolve) => sink.once("drain", () => resolve()));
    if (!sink.write(chunk)) await Promise.race([drained, writing]);
  }
  sink.end(undefined);
}

async function saveRemovals(archive: Pack, basePath: string, folder: string, present: Set<string>): Promise<void> {
  for (const name of await readdir(join(basePath, folder)).catch(() => [])) {
    const path = join(folder, name);
    if (present.has(name) || SKIPPED.has(path)) continue;
    archive.entry({ name: join(folder, WHITEOUT + name).slice(1), type: "file", size: 0 });
  }
}

/** Writes a saved archive into a fresh sandbox. Names come from a store: nothing but plain paths is accepted. */
export async function loadFilesystem(files: AgentFiles, archivePath: string): Promise<void> {
  const archive = extract();
  const reading = pipeline(createReadStream(archivePath), archive);
  reading.catch(() => {});
  for await (const entry of archive) {
    await loadEntry(files, entry.header, entry as unknown as AsyncIterable<Uint8Array>);
    entry.resume();
  }
  await reading;
}

async function loadEntry(files: AgentFiles, header: Header, content: AsyncIterable<Uint8Array>): Promise<void> {
  const path = `/${header.name.replace(/\/$/, "")}`;
  if (path.split("/").some((part) => part === "..") || path.includes("\0")) {
    throw new SandboxerError("image_damaged", `The filesystem snapshot names a file outside of the sandbox: ${path}`);
  }
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (name.startsWith(WHITEOUT)) {
    const removed = path.slice(0, -name.length) + name.slice(WHITEOUT.length);
    return ignoring(ENOENT, files.remove(removed, { recursive: true }));
  }
  if (header.type === "directory") await ignoring(EEXIST, files.makeFolder(path, { mode: header.mode ?? 0o755 }));
  else if (header.type === "symlink") {
    await ignoring(ENOENT, files.remove(path, { recursive: true }));
    await files.makeSymlink(header.linkname ?? "", path);
  } else if (header.type === "file") await files.write(path, content, { mode: header.mode ?? 0o644 });
  else return;
  await files.set(path, {
    ...(header.type === "symlink" ? {} : { mode: header.mode ?? 0o644 }),
    owner: { uid: header.uid ?? 0, gid: header.gid ?? 0 },
    modifiedNs: BigInt(header.mtime?.getTime() ?? 0) * 1_000_000n,
  });
}

const ENOENT = 2;
const EEXIST = 17;

async function ignoring(errno: number, work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    if (errnoOf(error) !== errno) throw error;
  });
}
