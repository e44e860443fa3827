import { setImmediate } from "node:timers/promises";
import type { ObjectStore } from "../../src/store/store.ts";
import type { MemoryStore } from "./memory-store.ts";

/** The actor that continues, and for how many steps. */
export interface Burst {
  readonly actor: number;
  readonly steps: number;
}

const LISTS = new Set<PropertyKey>(["list", "listCells", "listMarks", "listFolders", "read"]);

/** A check of nothing but the store, left out after steps that changed nothing there: its answer would be the same. */
export function whenChanged(store: MemoryStore, check: () => Promise<void>): () => Promise<void> {
  let checked = -1;
  return async () => {
    if (store.changes === checked) return;
    checked = store.changes;
    await check();
  };
}

/** Several actors over one store, one store call at a time: each call waits for its turn, and so does its answer. */
export class Turns {
  readonly #waiting = new Map<number, (() => void)[]>();
  #running = false;

  /** The store as one actor sees it. */
  storeOf(actor: number, inner: ObjectStore): ObjectStore {
    return new Proxy<ObjectStore>(inner, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property);
        if (typeof value !== "function") return value;
        const call = (...parameters: unknown[]): unknown => Reflect.apply(value, target, parameters);
        if (LISTS.has(property))
          return (...parameters: unknown[]) => this.#listAtOnce(actor, () => call(...parameters));
        return async (...parameters: unknown[]): Promise<unknown> => {
          await this.#turn(actor);
          const result = await call(...parameters);
          await this.#turn(actor);
          return result;
        };
      },
    });
  }

  /**
   * Runs the actors to their ends; what the bursts do not say is done in order. `everyone`: whether nobody has a turn
   * while another actor computes. Otherwise a busy machine decides who comes first: those that compress in threads come
   * last. Not for actors that wait for a clock.
   */
  async run(
    actors: readonly (() => Promise<void>)[],
    bursts: readonly Burst[],
    afterEachStep: () => Promise<void>,
    { everyone = false } = {},
  ): Promise<void> {
    this.#running = true;
    const acting = new Set(actors);
    const all = Promise.all(actors.map(async (actor) => await actor().finally(() => acting.delete(actor))));
    // Met at the end.
    all.catch(() => {});
    const plan = bursts.flatMap(({ actor, steps }) => Array.from({ length: steps }, () => actor)).values();
    try {
      while (acting.size > 0) {
        const waiting = [...this.#waiting.keys()];
        if (waiting.length < (everyone ? acting.size : 1)) {
          await setImmediate();
          continue;
        }
        const chosen = plan.next().value ?? Infinity;
        this.#release(this.#waiting.has(chosen) ? chosen : Math.min(...waiting));
        await setImmediate();
        await afterEachStep();
      }
      await all;
    } finally {
      this.#running = false;
      for (const actor of this.#waiting.keys()) while (this.#waiting.has(actor)) this.#release(actor);
    }
  }

  async *#listAtOnce(actor: number, list: () => unknown): AsyncGenerator {
    await this.#turn(actor);
    const items: unknown[] = [];
    for await (const item of list() as AsyncIterable<unknown>) items.push(item);
    await this.#turn(actor);
    yield* items;
  }

  async #turn(actor: number): Promise<void> {
    if (!this.#running) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.set(actor, [...(this.#waiting.get(actor) ?? []), resolve]);
    await promise;
  }

  #release(actor: number): void {
    const [first, ...others] = this.#waiting.get(actor) ?? [];
    if (others.length === 0) this.#waiting.delete(actor);
    else this.#waiting.set(actor, others);
    first?.();
  }
}
