import type { SandboxerError } from "@sandboxer/protocol";
import type { Clock } from "../../support/clock.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";

export type FaultyOperation =
  | "probe"
  | "acquire"
  | "acquireFromSnapshot"
  | "tryResume"
  | "exec"
  | "snapshot"
  | "ping"
  | "freeze"
  | "thaw"
  | "stop"
  | "destroy";

export interface Fault {
  /** Thrown by the operation, after the delay. */
  readonly error?: SandboxerError;
  readonly delayMs?: number;
  /** The operation waits for it, or for its abort: a test holds the operation where it is. */
  readonly until?: Promise<unknown>;
  /** How many calls get the fault; absent: every one. */
  readonly times?: number;
  /**
   * `snapshot` only. `half_written`: the member is cut in half and the call fails with `no_space`. The others succeed
   * and leave a member that the next load must refuse.
   */
  readonly damage?: "half_written" | "flipped_byte" | "truncated" | "missing";
}

/** Faults that tests inject, by operation. */
export class Faults {
  readonly #faults = new Map<FaultyOperation, { fault: Fault; left: number }>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  set(operation: FaultyOperation, fault: Fault): void {
    this.#faults.set(operation, { fault, left: fault.times ?? Infinity });
  }

  clear(operation?: FaultyOperation): void {
    if (operation === undefined) this.#faults.clear();
    else this.#faults.delete(operation);
  }

  /** Called once by each operation, before its side effects. */
  async meet(operation: FaultyOperation, signal?: AbortSignal): Promise<Fault> {
    signal?.throwIfAborted();
    const entry = this.#faults.get(operation);
    if (entry === undefined || entry.left <= 0) return {};
    entry.left -= 1;
    const { fault } = entry;
    if (fault.delayMs !== undefined) await this.#clock.sleep(fault.delayMs, signal);
    if (fault.until !== undefined) await unlessAborted(fault.until, signal);
    signal?.throwIfAborted();
    if (fault.error !== undefined) throw fault.error;
    return fault;
  }
}
