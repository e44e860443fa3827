import { SandboxerError } from "@sandboxer/protocol";
import { AGENT_FOLDER, AGENT_PATH } from "../agent/agent-place.ts";
import type { Resources } from "../backend.ts";
import type { CgroupLimits } from "./cgroups.ts";
import type { RootFilesystem } from "./root-filesystem/root-filesystem.ts";
import type { OciMount, OciSpec, RunnableSpec } from "./saved-spec.ts";

export type CompleteResources = Required<Omit<Resources, "cpus">> & Pick<Resources, "cpus">;

/** The agent's capabilities as root; children with another user have none of these. */
const AGENT_CAPABILITIES = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FOWNER",
  "CAP_KILL",
  "CAP_SETGID",
  "CAP_SETUID",
  "CAP_SYS_ADMIN",
];

/**
 * Root's capabilities, as in a container of Docker. The agent drops CAP_SYS_ADMIN before it starts a program, so that
 * root can neither trace the agent nor mount.
 */
const ROOT_CAPABILITIES = [
  ...AGENT_CAPABILITIES,
  "CAP_AUDIT_WRITE",
  "CAP_FSETID",
  "CAP_MKNOD",
  "CAP_NET_BIND_SERVICE",
  "CAP_SETFCAP",
  "CAP_SETPCAP",
  "CAP_SYS_CHROOT",
];

/** Host threads of gVisor's kernel and its stubs count too, so this only stops what escapes the limit inside. */
const HOST_THREADS = 8192;
/** gVisor's own memory besides the sandbox's. */
const ENGINE_MEMORY_BYTES = 96 * 1024 * 1024;
/**
 * The share of the memory limit for `/tmp` and `/dev/shm` each: running out of space is better than running out of
 * memory.
 */
const TMPFS_SHARE = 0.5;

export interface OciSpecRequest {
  readonly rootFilesystem: RootFilesystem;
  readonly agentDirectory: string;
  readonly hostname: string;
  readonly resources: CompleteResources;
  readonly cgroupsPath: string | undefined;
  /** Whether programs may run as root. Absent: no. */
  readonly rootInside?: boolean;
  /** Whether set-user-ID programs may raise a program's rights. Absent: no. */
  readonly gainsRights?: boolean;
}

/** Limits outside, for gVisor's own processes. */
export function cgroupLimits(resources: CompleteResources): CgroupLimits {
  const memoryBytes = resources.memoryBytes + ENGINE_MEMORY_BYTES;
  return { memoryBytes, threads: HOST_THREADS, cpus: resources.cpus };
}

/**
 * The configuration of a new sandbox. It is kept with each image and used again at a restore, with only the fields that
 * {@link relocateSpec} names replaced: newer runsc versions refuse an image whose configuration has changed.
 */
export function buildSpec(request: OciSpecRequest): OciSpec {
  const { resources, rootInside = false, gainsRights = false } = request;
  const capabilities = rootInside ? ROOT_CAPABILITIES : AGENT_CAPABILITIES;
  const tmpfsSize = `size=${Math.floor(resources.memoryBytes * TMPFS_SHARE)}`;
  return {
    ociVersion: "1.0.2",
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: [AGENT_PATH],
      cwd: "/",
      env: ["PATH=/usr/local/bin:/usr/bin:/bin"],
      noNewPrivileges: !gainsRights,
      capabilities: Object.fromEntries(["bounding", "effective", "permitted"].map((set) => [set, capabilities])),
      rlimits: [
        limit("RLIMIT_NOFILE", 65_536),
        limit("RLIMIT_NPROC", resources.processes),
        limit("RLIMIT_FSIZE", resources.fileBytes),
        limit("RLIMIT_CORE", 0),
      ],
    },
    root: { path: request.rootFilesystem.path, readonly: false },
    hostname: request.hostname,
    mounts: [
      mount("/proc", "proc"),
      mount("/dev", "tmpfs"),
      mount("/sys", "sysfs", ["nosuid", "noexec", "nodev", "ro"]),
      mount("/tmp", "tmpfs", ["mode=1777", "nosuid", "nodev", tmpfsSize]),
      mount("/run", "tmpfs", ["mode=755", "nosuid", "nodev"]),
      mount("/dev/shm", "tmpfs", ["mode=1777", "nosuid", "nodev", tmpfsSize]),
      bind(request.agentDirectory, AGENT_FOLDER),
      ...request.rootFilesystem.mounts.map(({ source, destination }) => bind(source, destination)),
    ],
    linux: {
      namespaces: (["pid", "network", "ipc", "uts", "mount"] as const).map((type) => ({ type })),
      // gVisor shows the limit inside as the machine's memory.
      resources: { memory: { limit: cgroupLimits(resources).memoryBytes } },
      ...(request.cgroupsPath === undefined ? {} : { cgroupsPath: request.cgroupsPath }),
    },
    annotations: {},
  };
}

export interface SpecLocation {
  readonly rootFilesystem: RootFilesystem;
  readonly agentDirectory: string;
  readonly hostname: string;
  readonly cgroupsPath: string | undefined;
}

/** The same configuration with this machine's paths. Only the paths given here are mounted. */
export function relocateSpec(spec: OciSpec, location: SpecLocation): OciSpec {
  const sources = new Map([
    [AGENT_FOLDER, location.agentDirectory],
    ...location.rootFilesystem.mounts.map(({ destination, source }) => [destination, source] as const),
  ]);
  const { cgroupsPath: _, ...linux } = spec.linux;
  return {
    ...spec,
    root: { ...spec.root, path: location.rootFilesystem.path },
    hostname: location.hostname,
    mounts: spec.mounts.map((each) =>
      each.type === "bind" ? { ...each, source: sourceOf(each.destination, sources) } : each,
    ),
    linux: { ...linux, ...(location.cgroupsPath === undefined ? {} : { cgroupsPath: location.cgroupsPath }) },
  };
}

/** For a sandbox with a network: the namespace at this path. */
export function withNetworkNamespace(spec: OciSpec, path: string): RunnableSpec {
  const namespaces = spec.linux.namespaces.map((each) => (each.type === "network" ? { ...each, path } : each));
  return { ...spec, linux: { ...spec.linux, namespaces } };
}

function sourceOf(destination: string, sources: ReadonlyMap<string, string>): string {
  const source = sources.get(destination);
  if (source !== undefined) return source;
  throw new SandboxerError(
    "image_incompatible",
    `The image cannot run on this server: it mounts ${destination}, which this server does not offer.`,
  );
}

function limit(type: string, value: number): { type: string; hard: number; soft: number } {
  return { type, hard: value, soft: value };
}

function mount(destination: string, type: OciMount["type"], options?: string[]): OciMount {
  return { destination, type, source: type, ...(options === undefined ? {} : { options }) };
}

function bind(source: string, destination: string): OciMount {
  return { destination, type: "bind", source, options: ["rbind", "ro", "nosuid"] };
}
