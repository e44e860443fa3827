import { packsOfImage } from "../checkpoints/packs/image-packs.ts";
import type { ObjectStore } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import { collectGarbage } from "./collect-garbage.ts";
import type { Findings } from "./garbage.ts";
import { PackSurveyor, type PacksOfImage } from "./pack-survey.ts";

export interface BackgroundOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly everyMs: number;
  readonly onCollected: (findings: Findings) => void;
  readonly onError: (error: unknown) => void;
  readonly packsOfImage?: PacksOfImage;
  /** From 0 to 1: servers that were started together do not collect together. */
  readonly chance?: () => number;
}

/**
 * Collects again and again until it is stopped. Of sandboxes without a rule of their own it removes no published
 * checkpoint and no snapshot: each server has its own rule for these, and keeps to it when it saves them.
 */
export class BackgroundCollection {
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(options: BackgroundOptions) {
    this.#running = run(options, this.#stop.signal);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

async function run(options: BackgroundOptions, signal: AbortSignal): Promise<void> {
  const { store, clock, everyMs, chance = Math.random } = options;
  // What it has read of images is kept for the next time.
  const packs = new PackSurveyor(options.packsOfImage ?? packsOfImage);
  while (!signal.aborted) {
    try {
      await clock.sleep(everyMs * (0.5 + chance() / 2), signal);
      options.onCollected(await collectGarbage({ store, clock, apply: true, keep: {}, packs, signal }));
    } catch (error) {
      if (!signal.aborted) options.onError(error);
    }
  }
}
