import { statfsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import type { MaxResources, ResourceLimits } from "../manager/resource-limits.ts";
import type { ServerConfig } from "./config.ts";
import { machineMemory } from "./resource-texts.ts";

/** As many of the host's threads as the gVisor sandboxes of one machine can use without harm. */
const MAX_PROCESSES = 4096;
/** The share of the machine's memory for sandboxes; the rest is for the server, gVisor's own processes and the host. */
const SANDBOXES_SHARE = 0.9;

export function resourceLimits({
  maxResources,
  maxTotalMemory,
  maxTotalCpus: totalCpus,
  dataDirectory,
}: ServerConfig): ResourceLimits {
  const diskBytes = volumeBytes(dataDirectory);
  const machine: MaxResources = {
    memoryBytes: machineMemory(),
    cpus: availableParallelism(),
    processes: MAX_PROCESSES,
    ...(diskBytes === undefined ? {} : { diskBytes }),
  };
  const here = { ...machine, ...maxResources };
  return { everywhere: maxResources, here, totalMemoryBytes: maxTotalMemory, totalCpus };
}

/** The common limit of all gVisor sandboxes. More may be reserved, but never used. */
export function sandboxesMemory({ maxTotalMemory }: Pick<ServerConfig, "maxTotalMemory">): number {
  return Math.min(maxTotalMemory, Math.floor(machineMemory() * SANDBOXES_SHARE));
}

/** The free space of the volume that a folder is on, or will be on. */
function volumeBytes(folder: string): number | undefined {
  try {
    const { blocks, bsize } = statfsSync(folder);
    return blocks * bsize;
  } catch {
    return dirname(folder) === folder ? undefined : volumeBytes(dirname(folder));
  }
}
