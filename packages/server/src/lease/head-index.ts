import type { Head } from "@sandboxer/protocol";
import { without } from "../store/index/index-names.ts";
import type { ObjectStore, SwapOutcome } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import { entriesOf } from "./head-entries.ts";

/** After this long between the entries and the answer, a collector may have taken the entries for abandoned. */
const SLOW_MS = 60_000;

/**
 * Writes the entries of heads into the index of a store. New ones come before the swap of a head, and old ones go after
 * it was applied: a head always has its entries, and an entry may be outdated.
 */
export class HeadIndex {
  readonly #store: ObjectStore;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #removals = new Set<Promise<void>>();

  constructor(store: ObjectStore, clock: Pick<Clock, "monotonicMs">) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Around a swap that replaces `from`. If it fails or its outcome is unknown, nothing is removed. */
  async around(
    sandboxId: string,
    from: Head | undefined,
    next: Head,
    swap: () => Promise<SwapOutcome>,
  ): Promise<SwapOutcome> {
    const before = from === undefined ? [] : entriesOf(sandboxId, from);
    const after = entriesOf(sandboxId, next);
    const added = without(after, before);
    const startedMs = this.#clock.monotonicMs();
    if (added.length > 0) await this.#store.addNames(added);
    const swapped = await swap();
    if (swapped.outcome !== "written") return swapped;
    if (added.length > 0 && this.#clock.monotonicMs() - startedMs > SLOW_MS) await this.#addAgain(added);
    this.#remove(without(before, after));
    return swapped;
  }

  /** Waits for removals in progress. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals);
  }

  /** The head is written, and its outcome is known. */
  async #addAgain(entries: readonly string[]): Promise<void> {
    await this.#store.addNames(entries).catch(() => {
      // The next comparison finds what is missing.
    });
  }

  /** Nobody waits for it: outdated entries are not confirmed by the head, and the collector removes them too. */
  #remove(entries: readonly string[]): void {
    if (entries.length === 0) return;
    const removal: Promise<void> = this.#store
      .removeNames(entries)
      .catch(() => {})
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }
}
