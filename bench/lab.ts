import type { CleanUp } from "./clean-up.ts";
import type { RawEngine } from "./raw/raw-engine.ts";
import type { EngineFacts, ServerProcess } from "./server/server-process.ts";

/** What a measurement works with. */
export interface Lab {
  readonly server: ServerProcess;
  readonly engine: EngineFacts;
  readonly raw: RawEngine;
  readonly quick: boolean;
  /** A folder on the disk that the store is on. */
  readonly scratch: string;
  readonly cleanUp: CleanUp;
  progress(line: string): void;
}
