import type { Effort } from "./arguments.ts";
import type { CleanUp } from "./clean-up.ts";
import type { RawEngine } from "./raw/raw-engine.ts";
import type { Skipped } from "./result.ts";
import type { EngineFacts, ServerProcess } from "./server/server-process.ts";

/** What a measurement works with. */
export interface Lab {
  readonly server: ServerProcess;
  readonly engine: EngineFacts;
  readonly raw: RawEngine;
  /** Fewer repeats and smaller sizes; see {@link Lab.effort}. */
  readonly quick: boolean;
  readonly effort: Effort;
  /** How many sandboxes the group `density` has live at once; absent: as the effort says. */
  readonly liveCount: number | undefined;
  /** A folder on the disk that the store is on. */
  readonly scratch: string;
  readonly cleanUp: CleanUp;
  /** Of the others that take part; whoever starts one notes it. */
  readonly versions: Record<string, string>;
  /** What a group could not measure and does not tell itself. */
  readonly skipped: Skipped[];
  readonly progress: (line: string) => void;
}

export function byEffort<T>({ effort }: Pick<Lab, "effort">, choices: Readonly<Record<Effort, T>>): T {
  return choices[effort];
}
