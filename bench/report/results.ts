import type { Machine } from "../machine.ts";
import type { Comparison } from "../result.ts";
import type { EngineFacts } from "../server/server-process.ts";

export interface Results {
  readonly date: string;
  readonly command: string;
  readonly quick: boolean;
  readonly machine: Machine;
  readonly engine: EngineFacts;
  readonly comparisons: readonly Comparison[];
  readonly serverResidentMiB: number;
}
