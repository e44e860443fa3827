import type { Clock } from "../../support/clock.ts";

/** By then whoever has asked for a sandbox has taken it, or does not take it any more. */
const ON_THE_WAY_MS = 5_000;

/**
 * The sandboxes that this server has just given to another one. Between the two the store says that nobody has them, and
 * a client that would wake one then would take it back from the server that it was moved to.
 */
export class RecentHandoffs {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** When, by sandbox id. Oldest first. */
  readonly #left = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  note(sandboxId: string): void {
    this.#forgetOld();
    this.#left.delete(sandboxId);
    this.#left.set(sandboxId, this.#clock.monotonicMs());
  }

  /** Whether it has left a moment ago. */
  isOnTheWay(sandboxId: string): boolean {
    this.#forgetOld();
    return this.#left.has(sandboxId);
  }

  #forgetOld(): void {
    const sinceMs = this.#clock.monotonicMs() - ON_THE_WAY_MS;
    for (const [sandboxId, leftMs] of this.#left) {
      if (leftMs > sinceMs) return;
      this.#left.delete(sandboxId);
    }
  }
}
