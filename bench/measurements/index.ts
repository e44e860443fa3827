import type { Lab } from "../lab.ts";
import type { Comparison } from "../result.ts";
import { measureCheckpoint } from "./checkpoint.ts";
import { measureCreate } from "./create.ts";
import { measureExec } from "./exec.ts";
import { measureMemory } from "./memory.ts";
import { measureOutput } from "./output.ts";

export const MEASUREMENTS: Readonly<Record<string, (lab: Lab) => Promise<Comparison[]>>> = {
  create: measureCreate,
  exec: measureExec,
  output: measureOutput,
  checkpoint: measureCheckpoint,
  memory: measureMemory,
};
