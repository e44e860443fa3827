import type { Violation } from "../checker/violation.ts";
import type { FaultInjector } from "../faults/fault-injector.ts";
import type { ServerSlot } from "../servers/server-slot.ts";
import type { Tally } from "../tally.ts";

/** Shared by the clients of a run. */
export interface ClientContext {
  readonly slots: readonly ServerSlot[];
  readonly injector: FaultInjector;
  readonly tally: Tally;
  /** The backend of the sandboxes. */
  readonly backend: string;
  /** The share of calls whose client does not wait for the answer. */
  readonly abortShare: number;
  /** How often the background process in a sandbox looks at the file. */
  readonly backgroundPauseSeconds: number;
  /** The longest pause of a client between two calls. */
  readonly thinkMs: number;
  readonly say: (line: string) => void;
  /** For what concerns no sandbox alone. */
  readonly onViolation: (violation: Violation) => void;
}
