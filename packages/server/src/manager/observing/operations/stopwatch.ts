import type { Clock } from "../../../support/clock.ts";

/** How long each phase of an operation took. */
export class Stopwatch {
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #phases: Record<string, number> = {};
  #lapMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
    this.#lapMs = this.#startMs;
  }

  /** Ends the current phase and records it under this name. */
  lap(phase: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#phases[phase] = round(nowMs - this.#lapMs);
    this.#lapMs = nowMs;
  }

  get elapsedMs(): number {
    return round(this.#clock.monotonicMs() - this.#startMs);
  }

  get phases(): Readonly<Record<string, number>> {
    return this.#phases;
  }
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100;
}
