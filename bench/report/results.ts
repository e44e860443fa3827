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
  /** The versions of the other participants. */
  readonly versions: Readonly<Record<string, string>>;
}

/** A group of measurements, with its run. */
export interface GroupResult extends Findings {
  readonly run: RunFacts;
  readonly seconds: number;
  /** Nothing of it was measured. */
  readonly failed?: true;
}

/** The newest results of each group: the content of `results.json`, and the input of the page. */
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
