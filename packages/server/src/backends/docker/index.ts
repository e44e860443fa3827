import { DockerBackend, type DockerBackendOptions } from "./docker-backend.ts";
import { DockerEngine } from "./engine/docker-engine.ts";
import { InstanceFolder, forgetDeadInstances, knownInstances } from "../instance-folder.ts";
import type { FateOf, OpenedBackend } from "../instance-folder.ts";
import { wakeToEnd } from "./wake-to-end.ts";
import { holderOf, idleTtlMsOf, Label, stoppedForMs } from "./labels.ts";

export interface DockerOptions {
  /** `unix:///PATH`, `tcp://HOST:PORT` or `https://HOST:PORT`. */
  readonly host: string;
  /** A folder of this installation, for the marks of its processes. */
  readonly directory: string;
  /** The id of this installation. */
  readonly owner: string;
}

export type OpenDockerOptions = DockerOptions & Omit<DockerBackendOptions, "engine" | "onClosed">;

/** Fails with `backend_unavailable` if the engine does not answer. */
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

/**
 * Cleans up after servers of this installation: containers of dead processes are stopped; half-created ones, those of
 * deleted sandboxes and those that were stopped for longer than their idle time are removed, and so are images of
 * interrupted saves. Containers of others, and of live servers, are not touched. Returns the ids of the dead processes.
 */
export async function recoverDocker({ host, directory, owner }: DockerOptions, fateOf: FateOf): Promise<string[]> {
  const engine = new DockerEngine(host);
  try {
    const listed = await engine.listContainers([`${Label.owner}=${owner}`]);
    await removeExpired(engine, listed);
    const cleanUp = async (instanceId: string): Promise<void> => {
      const left = listed.filter(({ Names }) => Names.some((name) => holderOf(name) === instanceId));
      for (const { Id } of left) await settle(engine, Id, instanceId, fateOf);
    };
    const dead = await forgetDeadInstances(directory, cleanUp);
    // The engine may have finished a request of a process after that process was dead and forgotten.
    const alive = new Set(await knownInstances(directory));
    const holders = new Set(listed.flatMap(({ Names }) => Names.flatMap((name) => holderOf(name) ?? [])));
    for (const holder of holders) if (!alive.has(holder)) await cleanUp(holder);
    await removeImages(engine, owner, alive);
    return dead;
  } finally {
    engine.close();
  }
}

/** Images that no container needs and that no live process is about to save. */
async function removeImages(engine: DockerEngine, owner: string, alive: ReadonlySet<string>): Promise<void> {
  for (const { Id, Labels } of await engine.listImages([`${Label.owner}=${owner}`, Label.snapshot])) {
    if (!alive.has(Labels[Label.snapshot] ?? "")) await engine.removeImage(Id);
  }
}

async function settle(engine: DockerEngine, id: string, instanceId: string, fateOf: FateOf): Promise<void> {
  const container = await engine.container(id);
  // A live process may have claimed it since it was listed.
  if (container === undefined || holderOf(container.Name) !== instanceId) return;
  const fate = await fateOf(container.Config.Labels[Label.sandboxId] ?? "");
  if (fate === "held") return;
  if (fate === "destroyed") return engine.removeContainer(id);
  const { Status } = container.State;
  if (Status === "paused") await wakeToEnd(engine, container);
  if (Status === "created" || Status === "dead") await engine.removeContainer(id);
  else if (Status !== "exited") await engine.stop(id);
}

async function removeExpired(engine: DockerEngine, listed: readonly { readonly Id: string }[]): Promise<void> {
  for (const { Id } of listed) {
    const container = await engine.container(Id);
    if (container === undefined || container.State.Status !== "exited") continue;
    const [stoppedMs, ttlMs] = [stoppedForMs(container, Date.now()), idleTtlMsOf(container)];
    if (stoppedMs !== undefined && ttlMs !== undefined && stoppedMs > ttlMs) await engine.removeContainer(Id);
  }
}
