import { type Ledger, Violation } from "./ledger.ts";
import type { Random } from "./random.ts";
import type { Timeline } from "./timeline.ts";

interface Surroundings {
  readonly ledger: Ledger;
  readonly timeline: Timeline;
  readonly weather: Random;
}

/**
 * Where sandboxes live that their provider keeps: there is one copy of each, and it lives on whatever becomes of its
 * server. The provider knows nothing of leases: a request that somebody sent before it was declared dead still arrives.
 */
export class SimulatedProvider {
  readonly #world: Surroundings;
  readonly #copies = new Map<string, "running" | "stopped">();
  readonly #made = new Set<string>();
  /** Called when a copy stops, for any reason. */
  onStopped: (sandboxId: string) => void = () => {};

  constructor(world: Surroundings) {
    this.#world = world;
  }

  /** Asks for a copy to run, and to be made first where nobody ever did. `then` hears whether there is one. */
  start(sandboxId: string, then: (isThere: boolean) => void, make: boolean): void {
    this.#arrive(() => {
      if (make) this.#made.add(sandboxId);
      if (make || this.#copies.has(sandboxId)) this.#copies.set(sandboxId, "running");
      const isThere = this.#copies.has(sandboxId);
      const { ledger } = this.#world;
      if (!isThere && this.#made.has(sandboxId) && !ledger.isDeleted(sandboxId))
        throw new Violation(`${sandboxId} is gone from its provider`);
      then(isThere);
    });
  }

  stop(sandboxId: string, then: () => void): void {
    this.#arrive(() => {
      if (this.#copies.has(sandboxId)) this.#copies.set(sandboxId, "stopped");
      this.onStopped(sandboxId);
      then();
    });
  }

  /** The only copy goes for good. */
  remove(sandboxId: string): void {
    this.#arrive(() => {
      if (!this.#copies.delete(sandboxId)) return;
      if (!this.#world.ledger.isDeleted(sandboxId)) {
        throw new Violation(`the only copy of ${sandboxId} was removed, and the sandbox is not destroyed`);
      }
      this.#world.ledger.tally.removed++;
    });
  }

  #arrive(action: () => void): void {
    const { timeline, weather } = this.#world;
    timeline.after(weather.between(1, 200), action);
  }
}
