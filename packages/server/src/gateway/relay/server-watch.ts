import { setTimeout as delay } from "node:timers/promises";

const LOOK_EVERY_MS = 2_000;

/** Whether this server has seen that another one is alive or dead. Asked often, so it must not read the store. */
export type IsAlive = (instanceId: string) => boolean;

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
      for (const [instanceId, waiting] of this.#waiting) this.#lookAt(instanceId, waiting);
    }
    this.#looking = false;
  }

  #lookAt(instanceId: string, waiting: ReadonlySet<() => void>): void {
    if (this.#isAlive(instanceId)) return;
    this.#waiting.delete(instanceId);
    for (const onDeath of waiting) onDeath();
  }
}
