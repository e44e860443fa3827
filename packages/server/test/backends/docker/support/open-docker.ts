import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AcquireRequest, SandboxBackend, SandboxIdentity } from "../../../../src/backends/backend.ts";
import { openDockerBackend, type OpenDockerOptions } from "../../../../src/backends/docker/index.ts";
import { HOST_IMAGE_PATH } from "../../../../../../test/kit/services/host-image.ts";
import { newRequest } from "../../contract/context.ts";
import type { DockerService } from "./docker-service.ts";

const MIB = 1024 * 1024;
const NODE_PATH = "/opt/node/bin/node";

/** A server process's backend on the test engine, with programs of this machine in its sandboxes. */
export async function openDocker(
  service: DockerService,
  directory: string,
  overrides: Partial<OpenDockerOptions> = {},
): ReturnType<typeof openDockerBackend> {
  const opened = await openDockerBackend({
    host: service.host,
    directory,
    owner: directory,
    instanceId: randomUUID(),
    agentPath: service.agentPath,
    defaultImage: `docker:${service.image}`,
    imageDirectories: [],
    defaultResources: { memoryBytes: 512 * MIB, processes: 256, fileBytes: 512 * MIB },
    heartbeatMs: 0,
    allowedMounts: [
      { source: "/usr", writable: false },
      { source: process.execPath, writable: false },
    ],
    ...overrides,
  });
  return { ...opened, backend: withPrograms(opened.backend) };
}

/** A backend of an installation of its own, for the contract suite. */
export async function openContractBackend(
  service: DockerService,
  overrides: Partial<OpenDockerOptions> = {},
): Promise<{ readonly backend: SandboxBackend; readonly close: () => Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), "sandboxer-docker-"));
  const { backend } = await openDocker(service, directory, overrides);
  const close = async (): Promise<void> => {
    await backend.close();
    await rm(directory, { recursive: true, force: true });
  };
  return { backend, close };
}

/** Every request gets this machine's programs, unless it has mounts of its own. */
function withPrograms(backend: SandboxBackend): SandboxBackend {
  const mounts = `/usr:/usr:ro,${process.execPath}:${NODE_PATH}:ro`;
  const prepared = (request: AcquireRequest): AcquireRequest => ({
    ...request,
    spec: {
      ...request.spec,
      env: { PATH: HOST_IMAGE_PATH, ...request.spec.env },
      inputs: { mounts, ...request.spec.inputs },
    },
  });
  return {
    name: backend.name,
    capabilities: backend.capabilities,
    probe: () => backend.probe(),
    acquire: (request, options) => backend.acquire(prepared(request), options),
    tryResume: (request, options) => backend.tryResume(prepared(request), options),
    acquireFromSnapshot: (request, snapshot, options) =>
      backend.acquireFromSnapshot(prepared(request), snapshot, options),
    close: () => backend.close(),
  };
}

/** A request that others find again by its key. The owner is the folder's, as in {@link openDocker}. */
export function keyed(key: string, directory: string, identity: Partial<SandboxIdentity> = {}): AcquireRequest {
  return {
    ...newRequest(),
    identity: { key, specHash: "same", owner: directory, idleTtlMs: 3_600_000, ...identity },
  };
}
