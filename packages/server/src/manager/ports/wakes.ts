import { Places } from "../../support/places.ts";

/**
 * Resumes paused sandboxes for requests to their ports: each of them once for all who ask, and few at a time, so that
 * many requests for paused sandboxes do not take the processors from those that run.
 */
export class Wakes {
  readonly #places: Places;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(atOnce: number) {
    this.#places = new Places(atOnce);
  }

  /** `name`: requests with the same name share one wake and its result. A wake that was asked for always runs. */
  run(name: string, wake: () => Promise<void>): Promise<void> {
    const shared = this.#underWay.get(name) ?? this.#places.run(wake).finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, shared);
    return shared;
  }
}
