import type { Violation } from "../checker/violation.ts";
import type { FaultInjector } from "../faults/fault-injector.ts";
import type { ServerSlot } from "../servers/server-slot.ts";
import type { Tally } from "../tally.ts";

/** What the clients of a run share. */
export interface ClientContext {
  readonly slots: readonly ServerSlot[];
  readonly injector: FaultInjector;
  readonly tally: Tally;
  /** Which backend makes the sandboxes. */
  readonly backend: string;
  /** The share of calls whose client does not wait for the answer. */
  readonly abortShare: number;
  /** How often the background process in a sandbox looks at the file. */
  readonly backgroundPauseSeconds: number;
  /** What a client does between two calls takes up to so long. */
  readonly thinkMs: number;
  readonly say: (line: string) => void;
  /** For what concerns no sandbox alone. */
  readonly onViolation: (violation: Violation) => void;
}
