import type { Lab } from "../lab.ts";
import type { Comparison, Findings } from "../result.ts";
import { measureCheckpoint } from "./checkpoint.ts";
import { measureCreate } from "./create.ts";
import { measureExec } from "./exec.ts";
import { measureHandoff } from "./handoff.ts";
import { measureMemory } from "./memory.ts";
import { measureOutput } from "./output.ts";
import { countRequests } from "./requests.ts";

type Measurement = (lab: Lab) => Promise<Partial<Findings>>;

const besideRaw =
  (measure: (lab: Lab) => Promise<Comparison[]>): Measurement =>
  async (lab) => ({ comparisons: await measure(lab) });

export const MEASUREMENTS: Readonly<Record<string, Measurement>> = {
  create: besideRaw(measureCreate),
  exec: besideRaw(measureExec),
  output: besideRaw(measureOutput),
  checkpoint: besideRaw(measureCheckpoint),
  memory: besideRaw(measureMemory),
  handoff: async (lab) => ({ handoffs: await measureHandoff(lab) }),
  requests: async (lab) => ({ requests: await countRequests(lab) }),
};
