import type { Clock } from "../../src/support/clock.ts";

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

/** Time that passes only when a test says so. */
export class FakeClock implements Clock {
  #nowMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  wallMs(): number {
    return 1_790_000_000_000 + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const sleeper: Sleeper = { dueMs: this.#nowMs + ms, wake: resolve };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", () => {
        this.#sleepers.delete(sleeper);
        reject(signal.reason as Error);
      });
    });
  }

  /** Time passes, and the process is not there to notice. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  advance(ms: number): void {
    this.stall(ms);
    for (const sleeper of this.#sleepers) {
      if (sleeper.dueMs > this.#nowMs) continue;
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
  }
}
