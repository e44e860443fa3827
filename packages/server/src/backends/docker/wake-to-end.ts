import type { Container } from "./engine/answers.ts";
import type { DockerEngine } from "./engine/docker-engine.ts";

/** Runtimes whose containers can be killed while they stand still. */
const KILLABLE = /^(runc|crun|io\.containerd\.runc\..+)$/;

/**
 * Lets a container that stands still go on, because it is to be ended now: gVisor takes no signal before. The engine
 * would wait for ten seconds, and then fail at times. Over the network it is not heard any more.
 */
export async function wakeToEnd(engine: DockerEngine, { Id, HostConfig }: Container): Promise<void> {
  const { Runtime, NetworkMode } = HostConfig;
  if (KILLABLE.test(Runtime)) return;
  if (NetworkMode !== "none") await engine.disconnect(Id, NetworkMode).catch(() => {});
  // Whatever is wrong with it shows when it is ended.
  await engine.unpause(Id).catch(() => {});
}
