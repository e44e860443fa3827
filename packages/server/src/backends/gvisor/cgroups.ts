import { access, constants, mkdir, readdir, readFile, rmdir } from "node:fs/promises";
import { join } from "node:path";

const MOUNT = "/sys/fs/cgroup";
/** The controllers of cgroup v1 that hold a sandbox's limits. */
const V1_CONTROLLERS = ["memory", "cpu", "pids"];

export type CgroupVersion = "v1" | "v2" | "none";

/** Which cgroups can be written here; without any, limits on memory and CPU cannot hold. */
export async function detectCgroups(): Promise<CgroupVersion> {
  const writable = (path: string): Promise<boolean> =>
    access(path, constants.W_OK).then(
      () => true,
      () => false,
    );
  if (await writable(join(MOUNT, "cgroup.controllers"))) return (await canMake(MOUNT)) ? "v2" : "none";
  for (const controller of V1_CONTROLLERS) {
    if (!(await writable(join(MOUNT, controller, "cgroup.procs")))) return "none";
  }
  return (await canMake(join(MOUNT, "memory"))) ? "v1" : "none";
}

async function canMake(parent: string): Promise<boolean> {
  const trial = join(parent, `sandboxer-probe-${process.pid}`);
  try {
    await mkdir(trial);
    await rmdir(trial);
    return true;
  } catch {
    return false;
  }
}

/** The cgroup of one sandbox, read while it runs and removed after it. */
export class SandboxCgroup {
  readonly path: string;
  readonly #version: CgroupVersion;

  constructor(version: CgroupVersion, path: string) {
    this.#version = version;
    this.path = path;
  }

  async memoryBytes(): Promise<number> {
    const file =
      this.#version === "v2" ? this.#file("", "memory.current") : this.#file("memory", "memory.usage_in_bytes");
    return Number(await readFile(file, "utf8").catch(() => "0"));
  }

  async cpuMs(): Promise<number> {
    if (this.#version === "v2") {
      const stat = await readFile(this.#file("", "cpu.stat"), "utf8").catch(() => "");
      return Number(/^usage_usec (\d+)$/m.exec(stat)?.[1] ?? 0) / 1000;
    }
    return Number(await readFile(this.#file("cpuacct", "cpuacct.usage"), "utf8").catch(() => "0")) / 1_000_000;
  }

  /** Whether the kernel has killed something of the sandbox for want of memory. */
  async ranOutOfMemory(): Promise<boolean> {
    const file = this.#version === "v2" ? this.#file("", "memory.events") : this.#file("memory", "memory.oom_control");
    const text = await readFile(file, "utf8").catch(() => "");
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0) > 0;
  }

  #file(controller: string, name: string): string {
    return join(MOUNT, controller, this.path, name);
  }
}

/** Removes a tree of empty cgroups, in every hierarchy. What still has processes stays. */
export async function removeCgroups(path: string): Promise<void> {
  for (const hierarchy of ["", ...(await readdir(MOUNT).catch(() => []))]) {
    await removeTree(join(MOUNT, hierarchy, path));
  }
}

async function removeTree(path: string): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(path, entry.name));
  await rmdir(path).catch(() => {});
}
