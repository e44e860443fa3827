import type { Resources, SandboxBackend } from "../backend.ts";
import { DockerBackend } from "./docker-backend.ts";
import { DockerEngine } from "./engine/docker-engine.ts";
import { InstanceFolder, installationId } from "./instance-folder.ts";
import type { AllowedMount } from "./mounts.ts";
import { recoverContainers } from "./recover.ts";

export { DEFAULT_ENGINE } from "./engine/address.ts";

export interface DockerOptions {
  /** `unix:///PATH`, `tcp://HOST:PORT` or `https://HOST:PORT`. */
  readonly host: string;
  /** A folder of this installation: its id, and the marks of its processes. */
  readonly directory: string;
}

export interface OpenDockerOptions extends DockerOptions {
  readonly instanceId: string;
  readonly agentPath: string;
  readonly defaultImage: string;
  readonly imageDirectories: readonly string[];
  readonly defaultResources: Resources;
  readonly heartbeatMs: number;
  readonly runtime?: string | undefined;
  readonly network?: string | undefined;
  readonly allowedMounts?: readonly AllowedMount[];
}

export interface OpenDocker {
  readonly backend: SandboxBackend;
  readonly workDirectory: string;
  noteLaterId(instanceId: string): Promise<void>;
  /** Stops its sandboxes, which can then be resumed. */
  close(): Promise<void>;
}

/** Fails with `backend_unavailable` when the engine does not answer. */
export async function openDockerBackend({ host, directory, ...options }: OpenDockerOptions): Promise<OpenDocker> {
  const engine = new DockerEngine(host);
  const owner = await installationId(directory);
  const backend = await DockerBackend.open({ ...options, engine, owner });
  const instance = await InstanceFolder.open(directory, options.instanceId);
  return {
    backend,
    workDirectory: instance.workDirectory,
    noteLaterId: (instanceId) => instance.noteLaterId(instanceId),
    close: async () => {
      await backend.close();
      await instance.close();
    },
  };
}

/** Puts in order what dead servers of this installation have left; gives the ids of those. */
export async function recoverDocker({ host, directory }: DockerOptions): Promise<string[]> {
  const engine = new DockerEngine(host);
  try {
    return await recoverContainers({ engine, directory, owner: await installationId(directory) });
  } finally {
    engine.close();
  }
}
