import type { SandboxBackend } from "../backend.ts";
import { DaytonaBackend } from "./daytona-backend.ts";
import type { DaytonaOptions } from "./daytona-options.ts";

export type { DaytonaOptions } from "./daytona-options.ts";

/** Nothing is asked of Daytona, and the key is not read, before the first call. */
export function openDaytonaBackend(options: DaytonaOptions): SandboxBackend {
  return new DaytonaBackend(options);
}
