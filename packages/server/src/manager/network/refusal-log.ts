import type { RefusedConnection } from "@sandboxer/protocol";
import type { Refusal } from "../../egress/egress.ts";
import type { Clock } from "../../support/clock.ts";
import type { EventLog } from "../observing/events/event-log.ts";

/** Kinds of refused connections that are kept for a sandbox; the oldest are dropped. */
const KEPT = 200;
/** The same connection is an event again after this long. */
const AGAIN_MS = 60_000;
/** Events of one sandbox at once, and then per minute. */
const BURST = 30;
const SHOWN_CHARACTERS = 253;

interface Kept {
  record: RefusedConnection;
  toldMs: number;
}

/** The refused connections of one sandbox since this server runs it: each kind once, with its number. */
export class RefusalLog {
  readonly #clock: Clock;
  readonly #events: Pick<EventLog, "append">;
  readonly #sandboxId: string;
  readonly #kept = new Map<string, Kept>();
  #total = 0;
  #budget = BURST;
  #filledMs = 0;

  constructor(clock: Clock, events: Pick<EventLog, "append">, sandboxId: string) {
    this.#clock = clock;
    this.#events = events;
    this.#sandboxId = sandboxId;
  }

  /** How many there were in all. */
  get total(): number {
    return this.#total;
  }

  /** Newest first. */
  get records(): readonly RefusedConnection[] {
    return [...this.#kept.values()].map(({ record }) => record).toReversed();
  }

  note({ name: given, port, rule, address }: Refusal): void {
    this.#total += 1;
    const name = given.slice(0, SHOWN_CHARACTERS).toWellFormed();
    const nowMs = this.#clock.monotonicMs();
    const now = new Date(this.#clock.wallMs()).toISOString();
    const key = JSON.stringify([name, port, rule]);
    const before = this.#kept.get(key);
    const count = (before?.record.count ?? 0) + 1;
    const first_at = before?.record.first_at ?? now;
    const record = { name, port, address: address ?? null, rule, count, first_at, last_at: now };
    const due = before === undefined || nowMs - before.toldMs >= AGAIN_MS;
    const told = due && this.#mayTell(nowMs);
    // Moved to the end: the newest is last.
    this.#kept.delete(key);
    this.#kept.set(key, { record, toldMs: told ? nowMs : (before?.toldMs ?? -Infinity) });
    if (this.#kept.size > KEPT) this.#kept.delete(this.#kept.keys().next().value ?? "");
    if (told) this.#events.append({ type: "network.refused", sandboxId: this.#sandboxId, data: { ...record } });
  }

  #mayTell(nowMs: number): boolean {
    this.#budget = Math.min(BURST, this.#budget + ((nowMs - this.#filledMs) / AGAIN_MS) * BURST);
    this.#filledMs = nowMs;
    if (this.#budget < 1) return false;
    this.#budget -= 1;
    return true;
  }
}
