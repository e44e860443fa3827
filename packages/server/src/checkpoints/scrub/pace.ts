import type { Clock } from "../../support/clock.ts";

/** A shorter delay is not worth a sleep. */
const SHORTEST_SLEEP_MS = 20;

/** Limits a reader to an average number of bytes per second. */
export class Pace {
  readonly #clock: Clock;
  /** Undefined: as fast as it goes. */
  bytesPerSecond: number | undefined;
  #dueMs = 0;

  constructor(clock: Clock, bytesPerSecond: number | undefined) {
    this.#clock = clock;
    this.bytesPerSecond = bytesPerSecond;
  }

  /** Resolves when that much may be read. Unused budget is not accumulated. */
  async take(bytes: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.bytesPerSecond === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    this.#dueMs = Math.max(this.#dueMs, nowMs) + (bytes * 1000) / this.bytesPerSecond;
    const waitMs = this.#dueMs - nowMs;
    if (waitMs >= SHORTEST_SLEEP_MS) await this.#clock.sleep(waitMs, signal);
  }
}
