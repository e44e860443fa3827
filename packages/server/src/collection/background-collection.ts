import { packsOfImage, type PacksOfImage } from "../checkpoints/open-image.ts";
import type { ObjectStore } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import { collectGarbage } from "./collect-garbage.ts";
import { collectPacks } from "./collect-packs.ts";
import type { CollectorSeat } from "./collector-seat.ts";
import type { CollectionContext, Findings } from "./garbage.ts";
import { PackSurveyor } from "./pack-survey.ts";

/** Interval between looks whether packs are to be collected, and whether it is this server's turn. */
const LOOK_MS = 5 * 60_000;
/** Saves with retention happen all the time; a collection after each of them would list the store constantly. */
const BETWEEN_LOOKS_MS = 3_600_000;
/** After this many failed collections in a row, another server tries. */
const MOST_FAILURES = 3;

export interface BackgroundOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly everyMs: number;
  /** A collection is due, whichever server carries it out. */
  readonly onDue?: () => void;
  readonly onCollected: (findings: Findings) => void;
  readonly onError: (error: unknown) => void;
  readonly packsOfImage?: PacksOfImage;
  /** The seat of the server that collects for the store. */
  readonly seat: CollectorSeat;
  /** Random from 0 to 1: servers that were started together do not look together. */
  readonly chance?: () => number;
}

/**
 * Collects repeatedly until it is stopped, while this server has the seat. For sandboxes without a retention rule it
 * removes no published checkpoint and no snapshot: each server has its own default rule, and applies it when it saves
 * them.
 */
export class BackgroundCollection {
  readonly #options: BackgroundOptions;
  /** Knowledge about images is kept for the next time. */
  readonly #packs: PackSurveyor;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #removed = false;
  #lookedMs = -Infinity;
  #failures = 0;

  constructor(options: BackgroundOptions) {
    this.#options = options;
    this.#packs = new PackSurveyor(options.packsOfImage ?? packsOfImage);
    this.#running = this.#run();
  }

  /** Images were removed: their packs, which are most of their bytes, are collected soon. */
  imagesRemoved(): void {
    this.#removed = true;
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
    const { clock, everyMs, chance = Math.random, onDue, onError } = this.#options;
    const { signal } = this.#stop;
    const nextDueMs = (): number => clock.monotonicMs() + everyMs * (0.5 + chance() / 2);
    let dueMs = nextDueMs();
    while (!signal.aborted) {
      try {
        await clock.sleep(Math.min(LOOK_MS, Math.max(0, dueMs - clock.monotonicMs())), signal);
        const isDue = clock.monotonicMs() >= dueMs;
        if (isDue) {
          dueMs = nextDueMs();
          onDue?.();
        }
        await this.#look(isDue);
      } catch (error) {
        if (!signal.aborted) onError(error);
      }
    }
  }

  async #look(isDue: boolean): Promise<void> {
    const { store, clock, seat, onCollected } = this.#options;
    const { signal } = this.#stop;
    const removed = this.#removed;
    this.#removed = false;
    const turn = await seat.look(removed).catch((error: unknown) => {
      // The next look reports it to the others.
      this.#removed ||= removed;
      throw error;
    });
    if (removed) this.#lookedMs = clock.monotonicMs();
    if (turn === undefined || (!isDue && turn.removals === turn.collected)) return;
    this.#lookedMs = clock.monotonicMs();
    const context: CollectionContext = { store, clock, apply: true, keep: {}, packs: this.#packs, signal };
    try {
      onCollected(isDue ? await collectGarbage(context) : await collectPacks(context, this.#packs, new Set()));
      await seat.collected(turn.removals);
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      if (this.#failures >= MOST_FAILURES && !signal.aborted) {
        await seat.leave();
        this.#failures = 0;
      }
      throw error;
    }
  }
}
