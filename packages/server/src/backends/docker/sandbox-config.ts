import { SandboxerError } from "@sandboxer/protocol";
import type { AcquireRequest, Resources } from "../backend.ts";
import { AGENT_PATH } from "../agent/agent-place.ts";
import type { ContainerConfig } from "./engine/container-config.ts";
import type { BindMount } from "./mounts.ts";

/** The agent's capabilities as root; children with another user have none of these. */
const AGENT_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"];
/** Root's further capabilities: the rest of Docker's own default that package managers need. */
const ROOT_CAPABILITIES = ["AUDIT_WRITE", "FSETID", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETPCAP", "SYS_CHROOT"];
/** Docker's minimum. */
const LEAST_MEMORY_BYTES = 6 * 1024 * 1024;

export interface SandboxConfigRequest {
  readonly request: AcquireRequest;
  readonly imageId: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly resources: Resources;
  readonly mounts: readonly BindMount[];
  /** A network of the engine; undefined: none. */
  readonly network: string | undefined;
  readonly runtime: string | undefined;
  /** Whether programs may run as root; absent: no. */
  readonly rootInside?: boolean;
}

/** A container whose PID 1 is the agent, with stdin that stays open when nobody is attached. */
export function sandboxConfig(wanted: SandboxConfigRequest): ContainerConfig {
  const { request, resources, runtime } = wanted;
  const { memoryBytes, fileBytes } = resources;
  if (memoryBytes !== undefined && memoryBytes < LEAST_MEMORY_BYTES) {
    throw new SandboxerError("bad_request", `Docker needs a memory limit of at least ${LEAST_MEMORY_BYTES} bytes.`);
  }
  return {
    Image: wanted.imageId,
    Entrypoint: [AGENT_PATH],
    Cmd: [],
    User: "0:0",
    WorkingDir: "/",
    Hostname: hostnameOf(request),
    // Code inside may be able to read the agent's environment, and every program of `docker exec` has it.
    Env: [],
    Labels: wanted.labels,
    Healthcheck: { Test: ["NONE"] },
    OpenStdin: true,
    StdinOnce: false,
    Tty: false,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    HostConfig: {
      ...(runtime === undefined ? {} : { Runtime: runtime }),
      NetworkMode: wanted.network ?? "none",
      CapDrop: ["ALL"],
      CapAdd: wanted.rootInside === true ? [...AGENT_CAPABILITIES, ...ROOT_CAPABILITIES] : AGENT_CAPABILITIES,
      SecurityOpt: ["no-new-privileges"],
      // Frames are not a log, and a log would keep every byte that a sandbox ever sent.
      LogConfig: { Type: "none" },
      Memory: memoryBytes ?? 0,
      // As much as the memory: no swap.
      MemorySwap: memoryBytes ?? 0,
      NanoCpus: Math.round((resources.cpus ?? 0) * 1e9),
      PidsLimit: resources.processes ?? 0,
      Ulimits: [limit("core", 0), ...(fileBytes === undefined ? [] : [limit("fsize", fileBytes)])],
      // Only on request: most storage drivers have no such limit.
      ...(request.spec.resources.diskBytes === undefined
        ? {}
        : { StorageOpt: { size: String(request.spec.resources.diskBytes) } }),
      Mounts: wanted.mounts.map(({ source, target, writable }) => ({
        Type: "bind",
        Source: source,
        Target: target,
        ReadOnly: !writable,
      })),
    },
  };
}

export function hostnameOf({ sandboxId }: Pick<AcquireRequest, "sandboxId">): string {
  return `sandbox-${sandboxId.slice(0, 8)}`;
}

function limit(Name: string, value: number): { Name: string; Soft: number; Hard: number } {
  return { Name, Soft: value, Hard: value };
}
