import type { DockerEngine } from "./engine/docker-engine.ts";
import { forgetDeadInstances } from "./instance-folder.ts";
import { holderOf, idleTtlMsOf, Label, stoppedForMs } from "./labels.ts";

export interface RecoveryOptions {
  readonly engine: DockerEngine;
  /** Where the processes of this machine have their marks. */
  readonly directory: string;
  readonly owner: string;
}

/**
 * Puts in order what servers of this installation have left: containers of processes that died on this machine are
 * stopped, half-made ones and those that were stopped for longer than their idle time are removed, and so are images of
 * saves that were cut off. Containers of others, and those that a living process holds, are not touched. Gives the
 * ids of the dead processes.
 */
export async function recoverContainers({ engine, directory, owner }: RecoveryOptions): Promise<string[]> {
  const listed = await engine.listContainers([`${Label.owner}=${owner}`]);
  await removeExpired(engine, listed);
  return forgetDeadInstances(directory, async (instanceId) => {
    const left = listed.filter(({ Names }) => Names.some((name) => holderOf(name) === instanceId));
    for (const { Id } of left) await settle(engine, Id, instanceId);
    for (const { Id } of await engine.listImages([`${Label.snapshot}=${instanceId}`])) await engine.removeImage(Id);
  });
}

async function settle(engine: DockerEngine, id: string, instanceId: string): Promise<void> {
  const container = await engine.container(id);
  // A living process may have taken it over since it was listed.
  if (container === undefined || holderOf(container.Name) !== instanceId) return;
  const { Status } = container.State;
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
