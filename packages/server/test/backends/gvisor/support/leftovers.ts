import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The leftovers of a server on this machine: processes, cgroups, mounts and files of its run directory. */
export interface Leftovers {
  readonly processes: readonly string[];
  readonly cgroups: readonly string[];
  readonly mounts: readonly string[];
  readonly files: readonly string[];
}

export const NOTHING: Leftovers = { processes: [], cgroups: [], mounts: [], files: [] };

export interface ServerPlaces {
  readonly path: string;
  readonly cgroupPath: string;
}

/** The leftovers of sandboxes of a running server. */
export function sandboxLeftovers(server: ServerPlaces): Leftovers {
  return {
    processes: processesWith(server.path),
    cgroups: cgroupsOf(server.cgroupPath).flatMap((folder) => childFolders(folder)),
    mounts: mountsOf(server.path),
    files: ["sandboxes", "state", "filestore", "tmp"].flatMap((folder) => childrenOf(join(server.path, folder))),
  };
}

/** The leftovers of an ended server. A program that was creating pipes for it finds no folder, and ends. */
export function serverLeftovers(server: ServerPlaces): Leftovers {
  return {
    processes: processesWith(server.path).filter((line) => !/^\d+ mkfifo /.test(line)),
    cgroups: cgroupsOf(server.cgroupPath),
    mounts: mountsOf(server.path),
    files: existsSync(server.path) ? [server.path] : [],
  };
}

/** Processes with this text in their arguments: the pid, and the arguments. */
export function processesWith(text: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => [pid, read(`/proc/${pid}/cmdline`).replaceAll("\0", " ")] as const)
    .filter(([, commandLine]) => commandLine.includes(text))
    .map((row) => row.join(" "));
}

function cgroupsOf(cgroupPath: string): string[] {
  const hierarchies = ["", ...childrenOf("/sys/fs/cgroup").map((path) => path.slice("/sys/fs/cgroup/".length))];
  return hierarchies.map((name) => join("/sys/fs/cgroup", name, cgroupPath)).filter((folder) => existsSync(folder));
}

function mountsOf(path: string): string[] {
  return read("/proc/self/mountinfo")
    .split("\n")
    .filter((line) => line.includes(path));
}

function childrenOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
}

function childFolders(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(folder, entry.name));
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
