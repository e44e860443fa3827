import { appendFile, mkdir, readdir, readFile, rm, stat, readlink } from "node:fs/promises";
import { join, basename, dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { acquireFileLock, type FileLock } from "../../support/file-lock.ts";
import { killQuietly } from "../../support/kill.ts";
import { removeCgroups } from "./cgroups.ts";
import { removeForgottenCgroups } from "./forgotten-cgroups.ts";
import { networkName } from "./network/names.ts";
import { removeServerNetwork } from "./network/server-network.ts";
import { cgroupsOutsideOfService } from "./service-cgroup.ts";

const LOCK_NAME = "lock";
/** The ids under which the server continued after it was fenced, one per line. */
const LATER_IDS_NAME = "later-instance-ids";
const RECOVERY_LOCK_NAME = ".recovery";
/** Cleaning up after one server takes seconds at most. */
const RECOVERY_TURN_MS = 60_000;
const CGROUP_PARENT = "/sandboxer";
const FOLDERS = ["state", "filestore", "sandboxes", "tmp", "pages"];
/** Longer than it takes to create a run directory; an incomplete one may still be being created. */
const BEING_MADE_MS = 60_000;

/**
 * The runtime files of one server process, in its own folder with a lock that dies with the process. A folder with a
 * free lock belongs to a dead server: its leftovers are ended and removed, and nothing else is touched.
 */
export class RunDirectory {
  readonly path: string;
  readonly instanceId: string;
  readonly cgroupPath: string;
  /** The cgroups for runsc, besides its sandbox's; see `service-cgroup.ts`. */
  readonly attachedCgroups: readonly string[];
  readonly #lock: FileLock;

  private constructor(path: string, instanceId: string, attachedCgroups: readonly string[], lock: FileLock) {
    this.path = path;
    this.instanceId = instanceId;
    this.cgroupPath = cgroupPathOf(instanceId);
    this.attachedCgroups = attachedCgroups;
    this.#lock = lock;
  }

  static async open(parent: string, instanceId: string): Promise<RunDirectory> {
    const path = join(parent, instanceId);
    await mkdir(path, { recursive: true, mode: 0o700 });
    // A server that looks for dead ones holds the lock for a moment.
    const lock = await acquireFileLock(join(path, LOCK_NAME), { waitMs: 5_000 });
    if (lock === undefined) throw new Error(`the new run directory ${path} is locked`);
    for (const folder of FOLDERS) await mkdir(join(path, folder), { mode: 0o700 });
    return new RunDirectory(path, instanceId, await cgroupsOutsideOfService(cgroupPathOf(instanceId)), lock);
  }

  get stateDirectory(): string {
    return join(this.path, "state");
  }

  get filestoreDirectory(): string {
    return join(this.path, "filestore");
  }

  /** For saves on their way to a store. */
  get workDirectory(): string {
    return join(this.path, "tmp");
  }

  /** For files that are prepared for saves, on the same disk. */
  get pagesDirectory(): string {
    return join(this.path, "pages");
  }

  sandboxDirectory(containerId: string): string {
    return join(this.path, "sandboxes", containerId);
  }

  /** The server continues under another id; its folder, cgroups and networks keep the first name. */
  async noteLaterId(instanceId: string): Promise<void> {
    await appendFile(join(this.path, LATER_IDS_NAME), `${instanceId}\n`);
  }

  async close(): Promise<void> {
    await removeLeftovers(this.path, this.instanceId);
    await this.#lock.release();
    await rm(this.path, { recursive: true, force: true });
  }
}

/** Cleans up after dead servers; returns their ids, so that their leases can be ended at once. */
export async function recoverRunDirectories(parent: string): Promise<string[]> {
  const found = await readdir(parent).catch(() => undefined);
  await removeForgottenCgroups(CGROUP_PARENT, new Set(found), () => foldersHeldBy(LOCK_NAME));
  if (found === undefined) return [];
  // One at a time: two that clean the same folder would interfere.
  const turn = await acquireFileLock(join(parent, RECOVERY_LOCK_NAME), { waitMs: RECOVERY_TURN_MS });
  if (turn === undefined) return [];
  try {
    const dead: string[] = [];
    for (const instanceId of await readdir(parent)) {
      if (!instanceId.startsWith(".")) dead.push(...(await recover(join(parent, instanceId), instanceId)));
    }
    return dead;
  } finally {
    await turn.release();
  }
}

/** All ids of the dead server that owned the folder; none if the server lives. */
async function recover(path: string, instanceId: string): Promise<string[]> {
  const lock = await acquireFileLock(join(path, LOCK_NAME)).catch(() => undefined);
  if (lock === undefined) return [];
  const abandoned = !(await isBeingMade(path));
  if (abandoned) await removeLeftovers(path, instanceId);
  const laterIds = await readFile(join(path, LATER_IDS_NAME), "utf8").catch(() => "");
  await lock.release();
  if (!abandoned) return [];
  await rm(path, { recursive: true, force: true, maxRetries: 5 });
  // A program that the dying server just started may have begun meanwhile. Later ones find no folder, and end.
  await endProcesses(path, instanceId);
  await rm(path, { recursive: true, force: true, maxRetries: 5 });
  // An unterminated last line is incomplete.
  return [instanceId, ...laterIds.split("\n").slice(0, -1)];
}

async function isBeingMade(path: string): Promise<boolean> {
  const names = await readdir(path);
  if (FOLDERS.every((folder) => names.includes(folder))) return false;
  return Date.now() - (await stat(path)).mtimeMs < BEING_MADE_MS;
}

function cgroupPathOf(instanceId: string): string {
  return `${CGROUP_PARENT}/${instanceId}`;
}

async function removeLeftovers(path: string, instanceId: string): Promise<void> {
  await endProcesses(path, instanceId);
  await removeServerNetwork(path, instanceId);
}

async function endProcesses(path: string, instanceId: string): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (performance.now() < deadlineMs) {
    const left = await processesNaming([`\0--root=${path}/`, networkName(instanceId)]);
    for (const pid of left) killQuietly(pid);
    // Killed processes leave their cgroup a moment later.
    if (left.length === 0 && (await removeCgroups(cgroupPathOf(instanceId)))) return;
    await delay(20);
  }
}

/**
 * Every runsc process of a server, including sandboxes and gofers, has the server's state folder in its arguments; the
 * network tools have its name.
 */
async function processesNaming(texts: readonly string[]): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const commandLine = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
    if (texts.some((text) => commandLine.includes(text))) found.push(Number(name));
  }
  return found;
}

/**
 * The names of the folders, anywhere on this machine, in which a live process holds the lock file `lockName`. Locks are
 * not tested by acquiring them: that would need the folders' paths, and disturb their holders.
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
