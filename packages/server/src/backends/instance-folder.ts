import { appendFile, mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxBackend } from "./backend.ts";
import { acquireFileLock, isFileLockFree, type FileLock } from "../support/file-lock.ts";

const INSTANCES_NAME = "instances";
const LOCK_NAME = "lock";
const WORK_NAME = "tmp";
const LATER_IDS_NAME = "later-instance-ids";
/** Longer than it takes to make a folder with its lock. */
const BEING_MADE_MS = 60_000;

/** A backend of a server process, with its files on this machine. */
export interface OpenedBackend {
  readonly backend: SandboxBackend;
  /** For saves on their way to a store. */
  readonly workDirectory: string;
  /** The server was fenced and continues under this id, so that it can be recognised after its death. */
  noteLaterId(instanceId: string): Promise<void>;
  /** Stops the sandboxes, which can then be resumed if they outlive the server; the folder of saves is removed. */
  close(): Promise<void>;
}

/**
 * The mark of one server process on this machine: a folder with a lock that dies with it. It shows whether the process
 * that holds a sandbox at its provider still lives.
 */
export class InstanceFolder {
  readonly instanceId: string;
  readonly #path: string;
  readonly #lock: FileLock;

  private constructor(path: string, instanceId: string, lock: FileLock) {
    this.#path = path;
    this.instanceId = instanceId;
    this.#lock = lock;
  }

  static async open(parent: string, instanceId: string): Promise<InstanceFolder> {
    const path = join(parent, INSTANCES_NAME, instanceId);
    await mkdir(path, { recursive: true, mode: 0o700 });
    const lock = await acquireFileLock(join(path, LOCK_NAME), { waitMs: 5_000 });
    if (lock === undefined) throw new Error(`the folder of the instance ${instanceId} is locked`);
    await mkdir(join(path, WORK_NAME), { recursive: true, mode: 0o700 });
    return new InstanceFolder(path, instanceId, lock);
  }

  /** For saves on their way to a store. */
  get workDirectory(): string {
    return join(this.#path, WORK_NAME);
  }

  /** The server continues under another id; its sandboxes keep the first name. */
  async noteLaterId(instanceId: string): Promise<void> {
    await appendFile(join(this.#path, LATER_IDS_NAME), `${instanceId}\n`);
  }

  /** A backend whose end is the end of this. */
  opened(backend: SandboxBackend): OpenedBackend {
    const { workDirectory } = this;
    return { backend, workDirectory, noteLaterId: (id) => this.noteLaterId(id), close: () => backend.close() };
  }

  async close(): Promise<void> {
    await this.#lock.release();
    await rm(this.#path, { recursive: true, force: true });
  }
}

/**
 * The registry's verdict on a sandbox that is found at its provider: a live server has it, it was deleted, or it is
 * unowned. Marks at the provider say who created and last held it, and may be outdated.
 */
export type Fate = "held" | "destroyed" | "free";
export type FateOf = (sandboxId: string) => Promise<Fate>;

/**
 * Calls `cleanUp` for each dead process of this machine, with all its ids, the first one first, and forgets it on
 * success. Returns all these ids.
 */
export async function forgetDeadInstances(
  parent: string,
  cleanUp: (instanceId: string, allIds: readonly string[]) => Promise<void>,
): Promise<string[]> {
  const dead: string[] = [];
  for (const instanceId of await knownInstances(parent)) {
    const path = join(parent, INSTANCES_NAME, instanceId);
    const lock = await acquireFileLock(join(path, LOCK_NAME)).catch(() => undefined);
    if (lock === undefined) continue;
    try {
      if (await isBeingMade(path)) continue;
      const laterIds = await readFile(join(path, LATER_IDS_NAME), "utf8").catch(() => "");
      const allIds = [instanceId, ...laterIds.split("\n").slice(0, -1)];
      await cleanUp(instanceId, allIds);
      dead.push(...allIds);
      await rm(path, { recursive: true, force: true });
    } finally {
      await lock.release();
    }
  }
  return dead;
}

/** Whether a process of this machine with this first id has died. False also without a mark here. */
export async function isInstanceGone(parent: string, instanceId: string): Promise<boolean> {
  const path = join(parent, INSTANCES_NAME, instanceId);
  if ((await stat(join(path, WORK_NAME)).catch(() => undefined)) === undefined) return false;
  return isFileLockFree(join(path, LOCK_NAME));
}

/** The processes with a mark here: live ones, and those whose death was not noticed yet. */
export async function knownInstances(parent: string): Promise<string[]> {
  return readdir(join(parent, INSTANCES_NAME)).catch(() => []);
}

async function isBeingMade(path: string): Promise<boolean> {
  const made = await stat(join(path, WORK_NAME)).catch(() => undefined);
  return made === undefined && Date.now() - (await stat(path)).mtimeMs < BEING_MADE_MS;
}
