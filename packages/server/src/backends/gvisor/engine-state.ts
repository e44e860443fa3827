import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { AttachedRunsc, Runsc } from "./runsc.ts";

export interface EngineState {
  readonly runsc: Runsc;
  readonly attached: AttachedRunsc;
  readonly containerId: string;
  readonly stateDirectory: string;
}

/**
 * Removes what runsc has noted about a container that has ended. An attached runsc does so itself, but for a lock file
 * now and then; only one that was killed leaves more than files.
 */
export async function removeEngineState(state: EngineState): Promise<void> {
  const { runsc, attached, containerId, stateDirectory } = state;
  if (attached.child.signalCode !== null) await runsc.command(["delete", "--force", containerId]).catch(() => {});
  for (const name of await readdir(stateDirectory).catch(() => [])) {
    if (name.includes(containerId)) await rm(join(stateDirectory, name), { force: true });
  }
}
