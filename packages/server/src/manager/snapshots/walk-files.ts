import { join } from "node:path/posix";
import { ERRORS, SandboxerError } from "@sandboxer/protocol";
import type { FileEntry, SandboxFiles } from "../../backends/backend.ts";
import type { Clock } from "../../support/clock.ts";
import type { FileList, ListedFile } from "./file-list.ts";

/** Folders where users write. The rest is the root filesystem, which nobody inside changes. */
const ROOTS = ["/workspace", "/home", "/tmp", "/var/tmp"];
/** Folders where they write only if the image allows it: these may be as large as the machine. */
const ROOTS_IF_WRITABLE = ["/root", "/srv", "/opt", "/usr/local"];
const USER = 1000;
const WRITABLE_BY_ALL = 0o002;
const MAX_FILES = 200_000;
/** A sandbox full of folders delays its captures by at most this. */
const MAX_MS = 5_000;
const FOLDERS_AT_ONCE = 16;

/** Lists the files of a sandbox with the rights of its user: files that the user cannot see are not listed. */
export async function listFiles(files: SandboxFiles, clock: Clock): Promise<FileList> {
  const found = new Map<string, ListedFile>();
  const deadlineMs = clock.monotonicMs() + MAX_MS;
  const writable = await Promise.all(
    ROOTS_IF_WRITABLE.map(async (root) => ((await isWritable(files, root)) ? [root] : [])),
  );
  const folders = [...ROOTS, ...writable.flat()];
  let truncated = false;
  while (folders.length > 0 && !truncated) {
    const batch = folders.splice(0, FOLDERS_AT_ONCE);
    const listings = await Promise.all(batch.map(async (folder) => await listFolder(files, folder)));
    for (const [index, entries] of listings.entries()) {
      if (entries === "too many") truncated = true;
      else
        for (const entry of entries) {
          const path = join(batch[index] ?? "/", entry.name);
          found.set(path, listed(entry));
          if (entry.kind === "folder") folders.push(path);
        }
    }
    truncated ||= found.size > MAX_FILES || (folders.length > 0 && clock.monotonicMs() > deadlineMs);
  }
  return { files: found, truncated };
}

/** A folder that is missing or unreadable has no files. */
async function listFolder(files: SandboxFiles, folder: string): Promise<readonly FileEntry[] | "too many"> {
  try {
    return await files.list(folder);
  } catch (error) {
    const code = error instanceof SandboxerError ? error.code : "internal";
    if (code === "limit_reached") return "too many";
    // A sandbox that does not answer is not one without files.
    if (ERRORS[code].httpStatus >= 500) throw error;
    return [];
  }
}

async function isWritable(files: SandboxFiles, folder: string): Promise<boolean> {
  const entry = await files.stat(folder).catch(() => undefined);
  return entry !== undefined && (entry.uid === USER || (entry.mode & WRITABLE_BY_ALL) !== 0);
}

function listed({ kind, sizeBytes, mode, modifiedMs, linkTarget }: FileEntry): ListedFile {
  return { kind, sizeBytes: kind === "folder" ? 0 : sizeBytes, mode: mode & 0o7777, modifiedMs, linkTarget };
}
