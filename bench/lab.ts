import type { Effort, Prices } from "./arguments.ts";
import type { CleanUp } from "./clean-up.ts";
import type { RawEngine } from "./raw/raw-engine.ts";
import type { Skipped } from "./result.ts";
import type { EngineFacts, ServerProcess } from "./server/server-process.ts";

/** The environment of a measurement. */
export interface Lab {
  readonly server: ServerProcess;
  readonly engine: EngineFacts;
  readonly raw: RawEngine;
  /** Fewer repeats and smaller sizes; see {@link Lab.effort}. */
  readonly quick: boolean;
  readonly effort: Effort;
  /** The number of live sandboxes in the group `density`; absent: depends on the effort. */
  readonly liveCount: number | undefined;
  /** The prices of a bucket's requests. */
  readonly prices: Prices;
  /** A folder on the store's disk. */
  readonly scratch: string;
  readonly cleanUp: CleanUp;
  /** Versions of the other participants; the code that starts one records it. */
  readonly versions: Record<string, string>;
  /** Skipped measurements that a group does not report itself. */
  readonly skipped: Skipped[];
  readonly progress: (line: string) => void;
}

export function byEffort<T>({ effort }: Pick<Lab, "effort">, choices: Readonly<Record<Effort, T>>): T {
  return choices[effort];
}
