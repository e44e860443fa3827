import { readdir, readFile, readlink } from "node:fs/promises";
import { basename, dirname } from "node:path";

/**
 * The names of the folders, wherever they are on this machine, in which a process that lives holds the lock file
 * `lockName`. Locks are not told by asking for them: that would need to know where the folders are, and disturb their
 * holders.
 */
export async function foldersHeldBy(lockName: string): Promise<ReadonlySet<string>> {
  const files = (await Promise.all([...(await lockHolders())].map(openFilesOf))).flat();
  return new Set(files.filter((path) => basename(path) === lockName).map((path) => basename(dirname(path))));
}

/** The processes that hold locks of the kind that `acquireFileLock` takes. */
async function lockHolders(): Promise<ReadonlySet<string>> {
  const lines = (await readFile("/proc/locks", "utf8").catch(() => "")).split("\n");
  const pids = lines.map((line) => /^\d+: POSIX +\S+ +WRITE (\d+) /.exec(line)?.[1]);
  return new Set(pids.filter((pid) => pid !== undefined));
}

async function openFilesOf(pid: string): Promise<string[]> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  return Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => "")));
}
