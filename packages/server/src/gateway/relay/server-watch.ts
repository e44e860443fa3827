import { setTimeout as delay } from "node:timers/promises";

const LOOK_EVERY_MS = 2_000;

/** Checks whether another server is alive; rejects if that is unknown now. */
export type IsAlive = (instanceId: string) => Promise<boolean>;

/**
 * Detects that the target of a relayed call was declared dead. A server that is stopped or cut off keeps its
 * connections open for long, and the caller would wait as long.
 */
export class ServerWatch {
  readonly #isAlive: IsAlive;
  readonly #waiting = new Map<string, Set<() => void>>();
  #looking = false;

  constructor(isAlive: IsAlive) {
    this.#isAlive = isAlive;
  }

  /** `onDeath` is called at most once, and not after the returned function was called. */
  add(instanceId: string, onDeath: () => void): () => void {
    const others = this.#waiting.get(instanceId) ?? new Set();
    this.#waiting.set(instanceId, others.add(onDeath));
    void this.#look();
    return () => {
      others.delete(onDeath);
      if (others.size === 0 && this.#waiting.get(instanceId) === others) this.#waiting.delete(instanceId);
    };
  }

  /** Until nobody waits any more. */
  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    while (this.#waiting.size > 0) {
      await delay(LOOK_EVERY_MS, undefined, { ref: false });
      await Promise.all([...this.#waiting].map(([instanceId, waiting]) => this.#lookAt(instanceId, waiting)));
    }
    this.#looking = false;
  }

  async #lookAt(instanceId: string, waiting: ReadonlySet<() => void>): Promise<void> {
    // An unavailable store says nothing about the server.
    if (await this.#isAlive(instanceId).catch(() => true)) return;
    this.#waiting.delete(instanceId);
    for (const onDeath of waiting) onDeath();
  }
}
