import { createHash } from "node:crypto";
import type { Clock } from "../support/clock.ts";
import { type Cell, type ObjectStore, trySwap } from "./store.ts";

const FOLDER = "shared";
const DAY_MS = 24 * 3_600_000;
/** Within this time of midnight, a record may be in either day. Clocks of servers differ by less than twice this. */
const OVERLAP_MS = 2 * 3_600_000;
/** Older days are removed. Sessions, the longest user, last half a day. */
const KEEP_DAYS = 2;
const SWEEP_MS = 3_600_000;

/**
 * Small records that all servers of a store share for a few hours: `shared/{day}/{kind}/{hash of the name}.json`. They
 * expire with their day (UTC), whole folders at a time, so that nobody has to read them to know their age.
 */
export class SharedRecords {
  readonly #store: ObjectStore;
  readonly #clock: Pick<Clock, "wallMs" | "monotonicMs">;
  /** The days that this server may have written to. */
  readonly #used = new Set<string>();
  /** When a sweep first saw each day (monotonic). */
  readonly #seenMs = new Map<string, number>();
  #sweptMs: number;

  constructor(store: ObjectStore, clock: Pick<Clock, "wallMs" | "monotonicMs">) {
    this.#store = store;
    this.#clock = clock;
    this.#sweptMs = clock.monotonicMs();
  }

  /** The key of a new record; `atMs`: a time that every server knows, if it is not to be looked for. */
  keyOf(kind: string, name: string, atMs: number = this.#clock.wallMs()): string {
    return this.#keyIn(dayOf(atMs), kind, name);
  }

  /**
   * Where a record may be that was written within the last {@link OVERLAP_MS}, oldest first. Servers whose clocks differ
   * by less than twice that have at least one of these keys in common.
   */
  keysOf(kind: string, name: string): readonly string[] {
    void this.#sweepIfDue();
    const nowMs = this.#clock.wallMs();
    const days = new Set([dayOf(nowMs - OVERLAP_MS), dayOf(nowMs + OVERLAP_MS)]);
    return [...days].map((day) => this.#keyIn(day, kind, name));
  }

  async find(keys: readonly string[]): Promise<{ readonly key: string; readonly cell: Cell } | undefined> {
    for (const key of keys) {
      const cell = await this.#store.readCell(key, { casual: true });
      if (cell !== undefined) return { key, cell };
    }
    return undefined;
  }

  async read(key: string): Promise<Cell | undefined> {
    return await this.#store.readCell(key);
  }

  /** Whether this body is now in the cell. A write without a clear answer is read back: bodies carry a nonce. */
  async swap(key: string, expected: string | undefined, body: Uint8Array): Promise<boolean> {
    const { outcome } = await trySwap(this.#store, key, expected, body);
    if (outcome !== "ambiguous") return outcome === "written";
    const found = await this.#store.readCell(key);
    return found !== undefined && Buffer.compare(found.body, body) === 0;
  }

  async #sweepIfDue(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#sweptMs < SWEEP_MS) return;
    this.#sweptMs = nowMs;
    // Another server, or this one an hour later, removes what is left.
    await this.sweep().catch(() => {});
  }

  /**
   * Removes expired days. Nobody writes there any more, so that several servers may do it at once. This clock may be
   * days ahead: a day that is old by it must also be old beside the newest day of others, or have been there long enough.
   */
  async sweep(): Promise<void> {
    const [nowMs, wallMs] = [this.#clock.monotonicMs(), this.#clock.wallMs()];
    const days = await Array.fromAsync(this.#store.listFolders(FOLDER));
    const others = days.filter((day) => !this.#used.has(day)).map((day) => Date.parse(day));
    const newestMs = others.filter((ms) => ms <= wallMs).toSorted((a, b) => b - a)[0] ?? wallMs;
    const oldest = dayOf(wallMs - KEEP_DAYS * DAY_MS);
    const oldestOfOthers = dayOf(newestMs - KEEP_DAYS * DAY_MS);
    for (const day of days) {
      const seenMs = this.#seenMs.get(day) ?? nowMs;
      this.#seenMs.set(day, seenMs);
      const isExpired = day < oldestOfOthers || nowMs - seenMs > KEEP_DAYS * DAY_MS;
      if (day < oldest && isExpired) await this.#store.deleteTree(`${FOLDER}/${day}`);
    }
  }

  #keyIn(day: string, kind: string, name: string): string {
    this.#used.add(day);
    return `${FOLDER}/${day}/${kind}/${createHash("sha256").update(name).digest("hex")}.json`;
  }
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
