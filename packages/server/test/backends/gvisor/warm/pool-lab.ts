import { setImmediate as turn } from "node:timers/promises";
import type { Recipe, WarmSandbox } from "../../../../src/backends/gvisor/warm/warm-group.ts";
import { WarmPool, type Room } from "../../../../src/backends/gvisor/warm/warm-pool.ts";
import { FakeClock } from "../../../lease/fake-clock.ts";

export class TestSandbox implements WarmSandbox {
  readonly key: string;
  readonly #ended = Promise.withResolvers<void>();
  readonly ended = this.#ended.promise;
  destroyed = false;
  adopted = 0;

  constructor(key: string) {
    this.key = key;
  }

  async destroy(): Promise<void> {
    this.destroyed = true;
    this.#ended.resolve();
  }

  crash(): void {
    this.#ended.resolve();
  }
}

interface Work {
  readonly key: string;
  readonly hurried: () => boolean;
  readonly done: () => void;
  readonly fail: () => void;
}

/** A pool whose sandboxes are created when a test says so. */
export class PoolLab {
  readonly clock = new FakeClock();
  readonly made: TestSandbox[] = [];
  readonly problems: string[] = [];
  room: Room = "free";
  /** They are created without waiting for the test. */
  atOnce = true;
  /** The creations in progress. */
  readonly work: Work[] = [];
  adoption: (sandbox: TestSandbox) => Promise<void> = async (sandbox) => void (sandbox.adopted += 1);
  readonly pool: WarmPool<TestSandbox>;

  constructor(max = 4) {
    const onProblem = (_: string, error: unknown): void => void this.problems.push((error as Error).message);
    this.pool = new WarmPool({ max, room: () => this.room, clock: this.clock, onProblem });
  }

  take(key = "plain", uncounted = 0, signal?: AbortSignal): Promise<TestSandbox | undefined> {
    const options = signal === undefined ? {} : { signal };
    return this.pool.take({ ...this.#recipe(key), uncounted }, (sandbox) => this.adoption(sandbox), options);
  }

  /** Lets time pass in small steps, and does everything that becomes due. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) {
      await settle();
      this.clock.advance(100);
    }
    await settle();
  }

  get living(): TestSandbox[] {
    return this.made.filter(({ destroyed, adopted }) => !destroyed && adopted === 0);
  }

  #recipe(key: string): Recipe<TestSandbox> {
    return {
      key,
      make: async ({ signal, hurry }) => {
        const made = Promise.withResolvers<void>();
        this.work.push({
          key,
          hurried: () => hurry.aborted,
          done: () => made.resolve(),
          fail: () => made.reject(new Error("cannot be made")),
        });
        signal.addEventListener("abort", () => made.reject(new Error("stopped")));
        if (this.atOnce) made.resolve();
        await made.promise.finally(() => this.work.shift());
        const sandbox = new TestSandbox(key);
        this.made.push(sandbox);
        return sandbox;
      },
    };
  }
}

export async function settle(): Promise<void> {
  for (let count = 0; count < 5; count++) await turn();
}
