import { access, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { CGROUP_MOUNT } from "./cgroups.ts";

/** Beside the sandboxes' own cgroups, which measure and limit their contents. */
const FOLDER = "attached";

/**
 * The cgroups, one for each hierarchy that systemd watches, that runsc must be in to survive when systemd stops this
 * server: by default systemd signals every process of the service at once, and runsc would end before its sandbox is
 * saved. None if the server is not run by systemd, or may not create them.
 */
export async function cgroupsOutsideOfService(cgroupPath: string): Promise<string[]> {
  const own = await readFile("/proc/self/cgroup", "utf8").catch(() => "");
  const folders = hierarchiesOfService(own).map((hierarchy) => join(hierarchy, cgroupPath, FOLDER));
  const made = await Promise.all(folders.map(async (folder) => ((await make(folder)) ? [folder] : [])));
  return made.flat();
}

/** A folder that is not a cgroup hierarchy has no such file. */
async function make(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { recursive: true });
    await access(join(folder, "cgroup.procs"));
    return true;
  } catch {
    return false;
  }
}

/** The mount points of the hierarchies in which this process belongs to a systemd service or scope. */
export function hierarchiesOfService(ownCgroups: string): string[] {
  return ownCgroups.split("\n").flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (path === undefined || !/\.(service|scope)(\/|$)/.test(path)) return [];
    if (controllers === "name=systemd") return [join(CGROUP_MOUNT, "systemd")];
    // Alone, or beside hierarchies of version 1.
    return controllers === "" ? [CGROUP_MOUNT, join(CGROUP_MOUNT, "unified")] : [];
  });
}
