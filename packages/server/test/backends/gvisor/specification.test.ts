import { expect, test } from "vitest";
import { buildSpec, cgroupLimits, relocateSpec } from "../../../src/backends/gvisor/oci-spec.ts";
import type { RootFilesystem } from "../../../src/backends/gvisor/root-filesystem/root-filesystem.ts";
import { parseSavedSpec } from "../../../src/backends/gvisor/saved-spec.ts";

const rootFilesystem = (place: string): RootFilesystem => ({
  image: "host",
  path: `${place}/root`,
  mounts: [{ source: `${place}/usr`, destination: "/usr" }],
  identity: { kind: "host", digest: "d", parts: {} },
});
const resources = { memoryBytes: 1 << 30, processes: 100, diskBytes: 1 << 30, fileBytes: 1 << 20, cpus: 0.5 };
const spec = buildSpec({
  rootFilesystem: rootFilesystem("/here"),
  agentDirectory: "/here/agent",
  hostname: "one",
  resources,
  cgroupsPath: "/a/b",
});

test("a specification is unchanged after a save and a load", () => {
  expect(parseSavedSpec(JSON.stringify(spec))).toEqual(spec);
});

test("only paths, hostname and cgroup change with the machine", () => {
  const moved = relocateSpec(spec, {
    rootFilesystem: rootFilesystem("/there"),
    agentDirectory: "/there/agent",
    hostname: "two",
    cgroupsPath: undefined,
  });
  expect(JSON.stringify(moved)).not.toContain("/here");
  expect(moved).toMatchObject({
    root: { path: "/there/root", readonly: false },
    hostname: "two",
    process: spec.process,
  });
  expect(moved.linux).not.toHaveProperty("cgroupsPath");
  expect(moved.mounts.map(({ destination }) => destination)).toEqual(spec.mounts.map(({ destination }) => destination));
});

test("a mount that this machine does not provide is refused", () => {
  const forged = { ...spec, mounts: [...spec.mounts, { destination: "/host", type: "bind" as const, source: "/" }] };
  const location = {
    rootFilesystem: rootFilesystem("/there"),
    agentDirectory: "/x",
    hostname: "two",
    cgroupsPath: undefined,
  };
  expect(() => relocateSpec(forged, location)).toThrow(/\/host/);
});

test.each([
  "",
  "null",
  "[]",
  "{}",
  JSON.stringify({ ...spec, hooks: {} }),
  JSON.stringify({ ...spec, annotations: { a: "b" } }),
  JSON.stringify({ ...spec, process: { ...spec.process, terminal: true } }),
  JSON.stringify({ ...spec, process: { ...spec.process, apparmorProfile: "" } }),
  JSON.stringify({ ...spec, linux: { ...spec.linux, namespaces: [{ type: "pid", path: "/proc/1/ns/pid" }] } }),
  JSON.stringify({ ...spec, mounts: [{ destination: "/x", type: "overlay", source: "/" }] }),
  // runsc takes any mount with such an option for a bind of the host's folder.
  JSON.stringify({ ...spec, mounts: [{ destination: "/x", type: "tmpfs", source: "/root", options: ["rbind"] }] }),
  JSON.stringify({ ...spec, mounts: [{ destination: "/x", type: "tmpfs", source: "/root" }] }),
  JSON.stringify({ ...spec, mounts: [{ destination: "/usr", type: "bind", source: "", options: ["rbind", "rw"] }] }),
  JSON.stringify({ ...spec, mounts: [{ destination: "/usr", type: "bind", source: "" }] }),
])("a foreign entry is a damaged image: %s", (text) => {
  expect(() => parseSavedSpec(text)).toThrow(expect.objectContaining({ code: "image_damaged" }));
});

test("the agent has few rights, and programs inside have no more", () => {
  expect(spec.process).toMatchObject({ noNewPrivileges: true, user: { uid: 0, gid: 0 } });
  expect(Object.keys(spec.process.capabilities).toSorted()).toEqual(["bounding", "effective", "permitted"]);
  expect(spec.process.rlimits).toContainEqual({ type: "RLIMIT_NPROC", hard: 100, soft: 100 });
  expect(spec.mounts.filter(({ type }) => type === "bind").every(({ options }) => options?.includes("ro"))).toBe(true);
  expect(cgroupLimits(resources)).toEqual({ memoryBytes: (1 << 30) + 96 * 1024 * 1024, threads: 8192, cpus: 0.5 });
});

test("root inside has the rights that package managers need, and sudo only if the engine supports it", () => {
  const request = { rootFilesystem: rootFilesystem("/here"), agentDirectory: "/a", hostname: "one", resources };
  const rooted = buildSpec({ ...request, cgroupsPath: undefined, rootInside: true });
  expect(rooted.process.noNewPrivileges).toBe(true);
  expect(rooted.process.capabilities["bounding"]).toEqual(expect.arrayContaining(["CAP_SYS_CHROOT", "CAP_FSETID"]));
  const dangerous = ["CAP_SYS_PTRACE", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_NET_ADMIN", "CAP_SYS_RESOURCE"];
  expect(rooted.process.capabilities["bounding"]?.filter((each) => dangerous.includes(each))).toEqual([]);
  const raising = buildSpec({ ...request, cgroupsPath: undefined, rootInside: true, gainsRights: true });
  expect(parseSavedSpec(JSON.stringify(raising)).process.noNewPrivileges).toBe(false);
});
