import type { Clock } from "../../support/clock.ts";

/** By then the other server has claimed the sandbox, or will not claim it any more. */
const ON_THE_WAY_MS = 5_000;

/**
 * The sandboxes that this server just handed off. Until the other server claims one, the store says that it is unowned,
 * and a client that resumed it here would take it back.
 */
export class RecentHandoffs {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Time of the handoff by sandbox id, oldest first. */
  readonly #left = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  note(sandboxId: string): void {
    this.#forgetOld();
    this.#left.delete(sandboxId);
    this.#left.set(sandboxId, this.#clock.monotonicMs());
  }

  /** Whether it was handed off a moment ago. */
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
