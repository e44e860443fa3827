import type { Head } from "@sandboxer/protocol";
import { nameOf, without } from "../store/index/index-names.ts";
import { WRITERS_FOLDER } from "../store/index/store-index.ts";
import type { ObjectStore, SwapOutcome } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import { entriesOf } from "./head-entries.ts";

/** After this long between the entries and the answer, a collector may have taken the entries for abandoned. */
const SLOW_MS = 60_000;
/** Longer than one list of names takes. */
const LIST_MS = 30_000;
const RETRY_MS = 1_000;

/**
 * Writes the entries of heads into the index of a store. New ones come before the swap of a head, and old ones go after
 * it was applied: a head always has its entries, and an entry may be outdated.
 */
export class HeadIndex {
  readonly #store: ObjectStore;
  readonly #clock: Pick<Clock, "monotonicMs" | "sleep">;
  readonly #removals = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(store: ObjectStore, clock: Pick<Clock, "monotonicMs" | "sleep">) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Tells readers that this server writes entries. Until then they see its liveness record, and trust no entry. */
  async enroll(instanceId: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        return await this.#store.addNames([`${WRITERS_FOLDER}/${instanceId}`]);
      } catch {
        await this.#clock.sleep(RETRY_MS, signal).catch(() => {});
      }
    }
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
    this.#removeReplaced(without(before, after), after);
    return swapped;
  }

  /** For a head that was removed with everything else of its sandbox. */
  forget(sandboxId: string, head: Head): void {
    this.#remove(entriesOf(sandboxId, head));
  }

  /** Carries out all removals now, and waits for them. */
  async settled(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#removals);
  }

  /** The head is written, and its outcome is known. */
  async #addAgain(entries: readonly string[]): Promise<void> {
    await this.#store.addNames(entries).catch(() => {
      // The next comparison finds what is missing.
    });
  }

  /**
   * A list in progress may have passed the place where a name with another suffix was added, and not yet have reached
   * the old one. Therefore that one stays until such lists have ended.
   */
  #removeReplaced(entries: readonly string[], present: readonly string[]): void {
    const names = new Set(present.map(nameOf));
    this.#remove(entries.filter((each) => !names.has(nameOf(each))));
    const renamed = entries.filter((each) => names.has(nameOf(each)));
    if (renamed.length > 0) this.#remove(renamed, this.#clock.sleep(LIST_MS, this.#closing.signal));
  }

  /** Nobody waits for it: outdated entries are not confirmed by the head, and the collector removes them too. */
  #remove(entries: readonly string[], begin: Promise<void> = Promise.resolve()): void {
    if (entries.length === 0) return;
    const removal: Promise<void> = begin
      .catch(() => {})
      .then(() => this.#store.removeNames(entries))
      .catch(() => {})
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }
}
