import { packsOfImage, type PacksOfImage } from "../checkpoints/open-image.ts";
import type { ObjectStore } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import { collectGarbage } from "./collect-garbage.ts";
import { collectPacks } from "./collect-packs.ts";
import type { CollectionContext, Findings } from "./garbage.ts";
import { PackSurveyor } from "./pack-survey.ts";

/** The delay between a removal and the removal of its packs; later removals in between are included. */
const SOON_MS = 5 * 60_000;
/** Saves with retention happen all the time; a collection after each of them would list the store constantly. */
const BETWEEN_LOOKS_MS = 3_600_000;

export interface BackgroundOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly everyMs: number;
  readonly onCollected: (findings: Findings) => void;
  readonly onError: (error: unknown) => void;
  readonly packsOfImage?: PacksOfImage;
  /** Random from 0 to 1: servers that were started together do not collect together. */
  readonly chance?: () => number;
}

/**
 * Collects repeatedly until it is stopped. For sandboxes without a retention rule it removes no published checkpoint
 * and no snapshot: each server has its own default rule, and applies it when it saves them.
 */
export class BackgroundCollection {
  readonly #options: BackgroundOptions;
  /** Knowledge about images is kept for the next time. */
  readonly #packs: PackSurveyor;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #removal = new AbortController();
  #lookedMs = -Infinity;

  constructor(options: BackgroundOptions) {
    this.#options = options;
    this.#packs = new PackSurveyor(options.packsOfImage ?? packsOfImage);
    this.#running = this.#run();
  }

  /** Images were removed: their packs, which are most of their bytes, are collected soon. */
  imagesRemoved(): void {
    this.#removal.abort();
  }

  /** A save may have removed an older image: the same, unless a collection began within the last hour. */
  imageReplaced(): void {
    if (this.#options.clock.monotonicMs() - this.#lookedMs >= BETWEEN_LOOKS_MS) this.imagesRemoved();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { store, clock, everyMs, chance = Math.random, onCollected, onError } = this.#options;
    const { signal } = this.#stop;
    const context: CollectionContext = { store, clock, apply: true, keep: {}, packs: this.#packs, signal };
    const nextDueMs = (): number => clock.monotonicMs() + everyMs * (0.5 + chance() / 2);
    let dueMs = nextDueMs();
    while (!signal.aborted) {
      try {
        const all = await this.#untilDue(dueMs);
        if (all) dueMs = nextDueMs();
        this.#lookedMs = clock.monotonicMs();
        onCollected(all ? await collectGarbage(context) : await collectPacks(context, this.#packs, new Set()));
      } catch (error) {
        if (!signal.aborted) onError(error);
      }
    }
  }

  /** True when a full collection is due, false when only packs are. */
  async #untilDue(dueMs: number): Promise<boolean> {
    const { clock } = this.#options;
    const { signal } = this.#stop;
    const removal = this.#removal.signal;
    const leftMs = Math.max(0, dueMs - clock.monotonicMs());
    // Removals of images never postpone the rest.
    if (leftMs === 0) return true;
    const isOver = await clock.sleep(leftMs, AbortSignal.any([signal, removal])).then(
      () => true,
      () => false,
    );
    signal.throwIfAborted();
    if (isOver) return true;
    await clock.sleep(SOON_MS, signal);
    this.#removal = new AbortController();
    return false;
  }
}
