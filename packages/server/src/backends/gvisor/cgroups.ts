import { randomUUID } from "node:crypto";
import { access, constants, mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

export const CGROUP_MOUNT = "/sys/fs/cgroup";
/** The controllers of cgroup v1 that enforce a sandbox's limits or measure its use. */
const V1_CONTROLLERS = ["memory", "cpu", "cpuacct", "pids"];
const REMOVAL_ATTEMPTS = 50;
const RETRY_MS = 20;
const LONGEST_RETRY_MS = 10_000;
const CREATION_ATTEMPTS = 5;

export type CgroupVersion = "v1" | "v2" | "none";

export interface CgroupLimits {
  readonly memoryBytes: number;
  readonly threads: number;
  readonly cpus: number | undefined;
  /** The limits of the parent cgroup, which the sandboxes of a server share; absent: no limit. */
  readonly allMemoryBytes?: number | undefined;
}

const CPU_PERIOD_US = 100_000;
const PAGE_BYTES = 4096;

/** Finds the version of writable cgroups; without any, limits on memory and CPU cannot be enforced. */
export async function detectCgroups(): Promise<CgroupVersion> {
  const writable = (path: string): Promise<boolean> =>
    access(path, constants.W_OK).then(
      () => true,
      () => false,
    );
  if (await writable(join(CGROUP_MOUNT, "cgroup.controllers"))) return (await canLimit("v2")) ? "v2" : "none";
  for (const controller of V1_CONTROLLERS) {
    if (!(await writable(join(CGROUP_MOUNT, controller, "cgroup.procs")))) return "none";
  }
  return (await canLimit("v1")) ? "v1" : "none";
}

async function canLimit(version: "v1" | "v2"): Promise<boolean> {
  // Servers in other containers may have the same process id.
  const parent = `/sandboxer-probe-${randomUUID()}`;
  const trial = new SandboxCgroup(version, `${parent}/trial`);
  try {
    await trial.create({ memoryBytes: 1 << 30, threads: 100, cpus: 1 });
    return true;
  } catch {
    return false;
  } finally {
    await removeCgroups(parent);
  }
}

/**
 * The cgroup of one sandbox. It is created here and not by runsc, which would remove it at the sandbox's end, before
 * anyone could see that the kernel had killed the sandbox for lack of memory.
 */
export class SandboxCgroup {
  readonly path: string;
  readonly #version: "v1" | "v2";

  constructor(version: "v1" | "v2", path: string) {
    this.#version = version;
    this.path = path;
  }

  async create(limits: CgroupLimits): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await (this.#version === "v2" ? this.#createV2(limits) : this.#createV1(limits));
      } catch (error) {
        // Another server may have taken the parent folder for an abandoned one, and removed it.
        if ((error as NodeJS.ErrnoException).code !== "ENOENT" || attempt === CREATION_ATTEMPTS) throw error;
      }
    }
  }

  async #createV1(limits: CgroupLimits): Promise<void> {
    await Promise.all(V1_CONTROLLERS.map((controller) => mkdir(this.#file(controller, ""), { recursive: true })));
    const quota = limits.cpus === undefined ? -1 : Math.round(limits.cpus * CPU_PERIOD_US);
    await this.#limitAll(join(CGROUP_MOUNT, "memory"), "memory.limit_in_bytes", limits);
    await writeFile(this.#file("memory", "memory.limit_in_bytes"), String(limits.memoryBytes));
    await writeFile(this.#file("pids", "pids.max"), String(limits.threads));
    // In order: when setting each of the two, the kernel writes the other one again from an earlier read.
    await writeFile(this.#file("cpu", "cpu.cfs_period_us"), String(CPU_PERIOD_US));
    await writeFile(this.#file("cpu", "cpu.cfs_quota_us"), String(quota));
  }

  async #createV2(limits: CgroupLimits): Promise<void> {
    const names = this.path.split("/").filter(Boolean);
    for (let depth = 0; depth < names.length; depth++) {
      const parent = join(CGROUP_MOUNT, ...names.slice(0, depth));
      await writeFile(join(parent, "cgroup.subtree_control"), "+memory +cpu +pids");
      await mkdir(join(parent, names[depth]!), { recursive: true });
    }
    const quota = limits.cpus === undefined ? "max" : String(Math.round(limits.cpus * CPU_PERIOD_US));
    await this.#limitAll(CGROUP_MOUNT, "memory.max", limits);
    await writeFile(this.#file("", "memory.max"), String(limits.memoryBytes));
    // Without swap, the limit is final.
    await writeFile(this.#file("", "memory.swap.max"), "0").catch(() => {});
    await writeFile(this.#file("", "pids.max"), String(limits.threads));
    await writeFile(this.#file("", "cpu.max"), `${quota} ${CPU_PERIOD_US}`);
  }

  /** For every sandbox, because the parent cgroup may have been removed and created again since the last one. */
  async #limitAll(hierarchy: string, name: string, { allMemoryBytes }: CgroupLimits): Promise<void> {
    if (allMemoryBytes === undefined) return;
    const file = join(hierarchy, dirname(this.path), name);
    // The kernel counts in pages.
    const limit = String(allMemoryBytes - (allMemoryBytes % PAGE_BYTES));
    if ((await readFile(file, "utf8")).trim() !== limit) await writeFile(file, limit);
  }

  /** Its share of contended CPUs. */
  async setPrecedence(precedence: "usual" | "after others"): Promise<void> {
    const last = precedence === "after others";
    if (this.#version === "v2") await writeFile(this.#file("", "cpu.weight"), last ? "1" : "100");
    else await writeFile(this.#file("cpu", "cpu.shares"), last ? "2" : "1024");
  }

  /** Without the page cache: saved images are in it, and the kernel takes it back when memory is short. */
  async memoryBytes(): Promise<number> {
    const v2 = this.#version === "v2";
    const read = (name: string): Promise<string> =>
      readFile(this.#file(v2 ? "" : "memory", name), "utf8").catch(() => "");
    const [used, statistics] = await Promise.all([
      read(v2 ? "memory.current" : "memory.usage_in_bytes"),
      read("memory.stat"),
    ]);
    return Math.max(0, Number(used) - fileCacheOf(statistics));
  }

  async cpuMs(): Promise<number> {
    if (this.#version === "v2") return cpuMsOf(await readFile(this.#file("", "cpu.stat"), "utf8").catch(() => ""));
    return Number(await readFile(this.#file("cpuacct", "cpuacct.usage"), "utf8").catch(() => "0")) / 1_000_000;
  }

  /**
   * Whether the kernel killed something of the sandbox for lack of memory. Its counter was seen to miss a kill on busy
   * machines; a kill while the memory was full counts too.
   */
  async ranOutOfMemory(wasKilled: boolean): Promise<boolean> {
    const v2 = this.#version === "v2";
    const read = (v1Name: string, v2Name: string): Promise<string> =>
      readFile(v2 ? this.#file("", v2Name) : this.#file("memory", v1Name), "utf8").catch(() => "");
    if (memoryKillsOf(await read("memory.oom_control", "memory.events")) > 0) return true;
    if (!wasKilled) return false;
    return wasFull(
      await read("memory.max_usage_in_bytes", "memory.peak"),
      await read("memory.limit_in_bytes", "memory.max"),
    );
  }

  /**
   * Call it when nothing of the sandbox runs. Killed processes leave their cgroup a moment later, and on a busy machine
   * much later: the caller waits for a second, and the removal is retried until it succeeds.
   */
  async remove(): Promise<void> {
    for (let attempt = 0; attempt < REMOVAL_ATTEMPTS; attempt++) {
      if (await removeCgroups(this.path)) return;
      await delay(RETRY_MS);
    }
    void this.#removeLater();
  }

  async #removeLater(): Promise<void> {
    for (let pauseMs = RETRY_MS; !(await removeCgroups(this.path)); pauseMs = Math.min(2 * pauseMs, LONGEST_RETRY_MS)) {
      await delay(pauseMs, undefined, { ref: false });
    }
  }

  #file(controller: string, name: string): string {
    return join(CGROUP_MOUNT, controller, this.path, name);
  }
}

/**
 * The bytes of cached files, from `memory.stat` of either version; of v1 the sums with the groups below. A sandbox's own
 * memory is shared memory, which counts as anonymous here.
 */
export function fileCacheOf(statistics: string): number {
  const sizes = new Map(statistics.split("\n").map((line) => [line.split(" ")[0], Number(line.split(" ")[1])]));
  const sizeOf = (name: string): number => sizes.get(`total_${name}`) ?? sizes.get(name) ?? 0;
  return sizeOf("active_file") + sizeOf("inactive_file");
}

/** From `cpu.stat` of cgroup v2. */
export function cpuMsOf(statistics: string): number {
  return Number(/^usage_usec (\d+)$/m.exec(statistics)?.[1] ?? 0) / 1000;
}

/** Whether the peak use reached the limit; both in bytes, or `max`. */
export function wasFull(peak: string, limit: string): boolean {
  return Number.parseInt(peak, 10) >= Number.parseInt(limit, 10);
}

/** From `memory.events` of cgroup v2, or `memory.oom_control` of v1. */
export function memoryKillsOf(events: string): number {
  return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0);
}

/** Removes a tree of empty cgroups, in every hierarchy. False: something is still in use. */
export async function removeCgroups(path: string): Promise<boolean> {
  const hierarchies = ["", ...(await readdir(CGROUP_MOUNT).catch(() => []))];
  const removed = await Promise.all(hierarchies.map((hierarchy) => removeTree(join(CGROUP_MOUNT, hierarchy, path))));
  return removed.every(Boolean);
}

async function removeTree(path: string): Promise<boolean> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) return true;
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(path, entry.name));
  return rmdir(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === "ENOENT" || error.code === "ENOTDIR",
  );
}
