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
  /** Nothing of it was measured. */
  readonly failed?: true;
}

/** The newest of each group: what `results.json` holds, and what the page is made of. */
export interface Results {
  readonly format: 1;
  readonly groups: Readonly<Record<string, GroupResult>>;
}

/** New results replace old ones; a failed group does not replace a good one. */
export function withNewer(before: Results, measured: Results["groups"]): Results {
  const newer = Object.entries(measured).filter(([name, { failed }]) => {
    const older = before.groups[name];
    return failed !== true || older === undefined || older.failed === true;
  });
  return { format: 1, groups: { ...before.groups, ...Object.fromEntries(newer) } };
}
