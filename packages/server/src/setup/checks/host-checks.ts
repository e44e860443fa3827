import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { release } from "node:os";
import { thisHost, whyNotGvisor } from "../host.ts";
import type { Check, CheckResult } from "./check.ts";

export const checkOperatingSystem: Check = async () => {
  const host = thisHost();
  const why = whyNotGvisor({ ...host, uid: 0 });
  const base = { name: "Linux", needed: true, version: `${host.operatingSystem} ${host.architecture}` };
  return why === undefined
    ? { ...base, state: "found", message: `Linux on ${host.architecture}` }
    : { ...base, state: "missing", message: why.reason, remedy: why.remedy };
};

export const checkRoot: Check = async () => {
  const { uid } = thisHost();
  const base = { name: "root", needed: true };
  if (uid === 0) return { ...base, state: "found", message: "runs as root" };
  return {
    ...base,
    state: "missing",
    message: `runs as uid ${uid}; runsc refuses create and restore when it is rootless`,
    remedy: "sudo sandboxer doctor",
  };
};

export const checkKernel: Check = async () => ({
  name: "kernel",
  state: "found",
  needed: true,
  version: release(),
  message: `kernel ${release()}`,
});

export const checkKvm: Check = async () => {
  const found = existsSync("/dev/kvm");
  return {
    name: "/dev/kvm",
    state: found ? "found" : "missing",
    needed: false,
    message: found ? "available; used only with --platform kvm" : "missing; only --platform kvm needs it",
  };
};

export const checkCgroups: Check = async () => {
  const mount = findCgroupMount();
  const base = { name: "cgroups", needed: false };
  const remedy =
    "Without cgroups, only gVisor itself enforces resource limits. In a container, start it with --privileged --cgroupns=host.";
  if (mount === undefined) return { ...base, state: "missing", message: "no cgroup file system is mounted", remedy };
  return isWritable(mount.path)
    ? { ...base, state: "found", version: mount.version, message: `${mount.version}, writable at ${mount.path}` }
    : {
        ...base,
        state: "missing",
        version: mount.version,
        message: `${mount.version} at ${mount.path} is not writable`,
        remedy,
      };
};

/** The interpreters that the `host` root filesystem offers to sandboxes, at their usual paths. */
export const checkInterpreters: Check = async () =>
  ["python3", "bash", "node"].map((name): CheckResult => {
    const path = [`/usr/bin/${name}`, `/usr/local/bin/${name}`, `/bin/${name}`].find((place) => existsSync(place));
    const base = { name: `${name} for sandboxes`, needed: false };
    if (path !== undefined) return { ...base, state: "found", message: path };
    return {
      ...base,
      state: "missing",
      message: `sandboxes on the host's root filesystem cannot run ${name}`,
      remedy: `apt-get install ${name === "node" ? "nodejs" : name}`,
    };
  });

/** With both versions mounted, controllers are those of version 1. */
function findCgroupMount(): { path: string; version: string } | undefined {
  let mounts: string[][];
  try {
    mounts = readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" "));
  } catch {
    return undefined;
  }
  const first = mounts.find(
    ([, , type, options]) => type === "cgroup" && options?.split(",").includes("memory") === true,
  );
  if (first?.[1] !== undefined) return { path: first[1], version: "v1" };
  const second = mounts.find(([, path, type]) => type === "cgroup2" && path === "/sys/fs/cgroup");
  return second?.[1] === undefined ? undefined : { path: second[1], version: "v2" };
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
