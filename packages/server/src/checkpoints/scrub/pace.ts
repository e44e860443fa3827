import type { Clock } from "../../support/clock.ts";

/** What is less is not worth a sleep. */
const SHORTEST_SLEEP_MS = 20;

/** Holds a reader to so many bytes in a second, on the average. */
export class Pace {
  readonly #clock: Clock;
  /** Undefined: as fast as it goes. */
  bytesPerSecond: number | undefined;
  #dueMs = 0;

  constructor(clock: Clock, bytesPerSecond: number | undefined) {
    this.#clock = clock;
    this.bytesPerSecond = bytesPerSecond;
  }

  /** Resolves when it is time for that much. What was not used before is not saved up. */
  async take(bytes: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.bytesPerSecond === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    this.#dueMs = Math.max(this.#dueMs, nowMs) + (bytes * 1000) / this.bytesPerSecond;
    const waitMs = this.#dueMs - nowMs;
    if (waitMs >= SHORTEST_SLEEP_MS) await this.#clock.sleep(waitMs, signal);
  }
}
