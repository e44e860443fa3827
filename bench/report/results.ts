import type { Machine } from "../machine.ts";
import type { Findings } from "../result.ts";
import type { EngineFacts } from "../server/server-process.ts";

export interface Results extends Findings {
  readonly date: string;
  readonly command: string;
  readonly quick: boolean;
  readonly machine: Machine;
  readonly engine: EngineFacts;
  readonly serverResidentMiB: number;
}
