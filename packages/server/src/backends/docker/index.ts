import { DockerBackend, type DockerBackendOptions } from "./docker-backend.ts";
import { DockerEngine } from "./engine/docker-engine.ts";
import { type FateOf, InstanceFolder, type OpenedBackend } from "../instance-folder.ts";
import { recoverContainers } from "./recover.ts";

export interface DockerOptions {
  /** `unix:///PATH`, `tcp://HOST:PORT` or `https://HOST:PORT`. */
  readonly host: string;
  /** A folder of this installation, for the marks of its processes. */
  readonly directory: string;
  /** The id of this installation. */
  readonly owner: string;
}

export type OpenDockerOptions = DockerOptions & Omit<DockerBackendOptions, "engine" | "onClosed">;

/** Fails with `backend_unavailable` when the engine does not answer. */
export async function openDockerBackend({ host, directory, ...options }: OpenDockerOptions): Promise<OpenedBackend> {
  const engine = new DockerEngine(host);
  const instance = await InstanceFolder.open(directory, options.instanceId);
  try {
    const backend = await DockerBackend.open({ ...options, engine, onClosed: () => instance.close() });
    return instance.opened(backend);
  } catch (error) {
    engine.close();
    await instance.close();
    throw error;
  }
}

/** Puts in order what dead servers of this installation have left; gives the ids of those. */
export async function recoverDocker({ host, directory, owner }: DockerOptions, fateOf: FateOf): Promise<string[]> {
  const engine = new DockerEngine(host);
  try {
    return await recoverContainers({ engine, directory, owner, fateOf });
  } finally {
    engine.close();
  }
}
