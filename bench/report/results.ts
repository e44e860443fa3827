import type { Machine } from "../machine.ts";
import type { Findings } from "../result.ts";
import type { EngineFacts } from "../server/server-process.ts";

/** One call of `npm run bench`. */
export interface RunFacts {
  readonly date: string;
  readonly command: string;
  readonly quick: boolean;
  readonly machine: Machine;
  readonly engine: Omit<EngineFacts, "path">;
  /** Of the others that took part. */
  readonly versions: Readonly<Record<string, string>>;
}

/** A group of measurements, with the run that it is of. */
export interface GroupResult extends Findings {
  readonly run: RunFacts;
  readonly seconds: number;
}

/** The newest of each group: what `results.json` holds, and what the page is made of. */
export interface Results {
  readonly format: 1;
  readonly groups: Readonly<Record<string, GroupResult>>;
}
