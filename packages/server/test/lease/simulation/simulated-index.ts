import type { Head } from "@sandboxer/protocol";
import { entriesOf } from "../../../src/lease/head-entries.ts";
import { nameOf, without } from "../../../src/store/index/index-names.ts";
import type { Bug } from "./bugs.ts";
import { Violation } from "./ledger.ts";
import { Random } from "./random.ts";

const LATEST_MS = 20_000;
/** How often a server ends before it removes what a head no longer needs. */
const NEVER = 0.2;

/** The entries of heads in the store. Removals arrive whenever they like, also after their sender has ended. */
export class SimulatedIndex {
  readonly #entries = new Set<string>();
  readonly #heads: ReadonlyMap<string, { readonly body: Head }>;
  readonly #bug: Bug | undefined;
  /** A random sequence of its own: the index changes nothing else in a schedule. */
  readonly #random: Random;
  #removals: { readonly sandboxId: string; readonly keys: readonly string[]; readonly dueMs: number }[] = [];

  constructor(heads: ReadonlyMap<string, { readonly body: Head }>, seed: number, bug: Bug | undefined) {
    this.#heads = heads;
    this.#random = new Random(seed * 13 + 4);
    this.#bug = bug;
  }

  /** A server is about to swap a head. */
  before(sandboxId: string, from: Head | undefined, next: Head): void {
    if (this.#bug === "entries-after-swap" && this.#random.chance(0.5)) return;
    const before = from === undefined ? [] : this.#needed(sandboxId, from);
    for (const key of without(this.#needed(sandboxId, next), before)) this.#entries.add(key);
  }

  /** Its swap was applied. */
  after(sandboxId: string, from: Head | undefined, next: Head, nowMs: number): void {
    this.#check(sandboxId);
    const before = from === undefined ? [] : this.#needed(sandboxId, from);
    const keys = without(before, this.#needed(sandboxId, next));
    const dueMs = nowMs + this.#random.next() * LATEST_MS;
    if (keys.length > 0 && !this.#random.chance(NEVER)) this.#removals.push({ sandboxId, keys, dueMs });
  }

  arriveUntil(nowMs: number): void {
    const due = this.#removals.filter(({ dueMs }) => dueMs <= nowMs);
    if (due.length === 0) return;
    this.#removals = this.#removals.filter(({ dueMs }) => dueMs > nowMs);
    for (const { keys } of due) for (const key of keys) this.#entries.delete(key);
    for (const { sandboxId } of due) this.#check(sandboxId);
  }

  #needed(sandboxId: string, head: Head): readonly string[] {
    const keys = entriesOf(sandboxId, head);
    return this.#bug === "entries-without-epoch" ? keys.map(nameOf) : keys;
  }

  #check(sandboxId: string): void {
    const head = this.#heads.get(sandboxId)?.body;
    const lost = head === undefined ? [] : this.#needed(sandboxId, head).filter((key) => !this.#entries.has(key));
    if (lost.length > 0) throw new Violation(`the index has lost ${lost.join(" and ")}`);
  }
}
