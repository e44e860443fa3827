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
 * Removes runsc's records of a container that has ended. An attached runsc does so itself, except for an occasional
 * lock file; only a killed one leaves more than files.
 */
export async function removeEngineState(state: EngineState): Promise<void> {
  const { runsc, attached, containerId, stateDirectory } = state;
  if (attached.child.signalCode !== null) await runsc.command(["delete", "--force", containerId]).catch(() => {});
  for (const name of await readdir(stateDirectory).catch(() => [])) {
    if (name.includes(containerId)) await rm(join(stateDirectory, name), { force: true });
  }
}
