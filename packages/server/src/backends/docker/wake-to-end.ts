import type { Container } from "./engine/answers.ts";
import type { DockerEngine } from "./engine/docker-engine.ts";

/** Runtimes whose containers can be killed while they are paused. */
const KILLABLE = /^(runc|crun|io\.containerd\.runc\..+)$/;

/**
 * Unpauses a container that is about to end: gVisor accepts no signal before. The engine would wait for ten seconds,
 * and sometimes fail. Its network is already disconnected.
 */
export async function wakeToEnd(engine: DockerEngine, { Id, HostConfig }: Container): Promise<void> {
  const { Runtime, NetworkMode } = HostConfig;
  if (KILLABLE.test(Runtime)) return;
  if (NetworkMode !== "none") await engine.disconnect(Id, NetworkMode).catch(() => {});
  // A problem shows when it is ended.
  await engine.unpause(Id).catch(() => {});
}
