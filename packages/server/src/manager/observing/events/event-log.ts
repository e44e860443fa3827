import { randomBytes } from "node:crypto";
import { SandboxerError, type EventRecord } from "@sandboxer/protocol";
import type { Clock } from "../../../support/clock.ts";

export interface NewEvent {
  readonly type: string;
  readonly sandboxId: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

interface Kept {
  /** Number since the server started. */
  readonly place: number;
  readonly record: EventRecord;
}

/** Separate limits for frequent program events and all others, so that neither pushes out the other. */
const KEEP_EVENTS = 10_000;
const FREQUENT = "execution.";

/**
 * The events of this server since it started, up to a limit. A cursor is a reader's position; a cursor from an earlier
 * run of the server, or one whose events were dropped, continues with the oldest event.
 */
export class EventLog {
  readonly #clock: Clock;
  readonly #life = randomBytes(4).toString("hex");
  readonly #events = new Ring<Kept>(KEEP_EVENTS);
  readonly #frequent = new Ring<Kept>(KEEP_EVENTS);
  readonly #listeners = new Set<(event: EventRecord) => void>();
  #appended = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  append(event: NewEvent): void {
    this.#appended += 1;
    const record = this.#record(event);
    const ring = event.type.startsWith(FREQUENT) ? this.#frequent : this.#events;
    ring.push({ place: this.#appended, record });
    for (const listener of this.#listeners) listener(record);
  }

  /** Only for current listeners: the event is not kept, and its cursor is that of the last kept one. */
  tell(event: NewEvent): void {
    if (this.#listeners.size === 0) return;
    const record = this.#record(event);
    for (const listener of this.#listeners) listener(record);
  }

  /** Events after the cursor, oldest first; without a cursor from the oldest. */
  after(cursor: string | undefined): readonly EventRecord[] {
    const place = this.#placeOf(cursor);
    const kept = [...this.#events.all(), ...this.#frequent.all()].filter((event) => event.place > place);
    return kept.toSorted((left, right) => left.place - right.place).map(({ record }) => record);
  }

  /** Whether a cursor is of this log, since this server started. */
  isOwn(cursor: string): boolean {
    return cursor.startsWith(`${this.#life}-`);
  }

  /** The cursor of a reader that wants only future events. */
  get end(): string {
    return this.#cursor(this.#appended);
  }

  listen(listener: (event: EventRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** 0: before all events. */
  #placeOf(cursor: string | undefined): number {
    if (cursor === undefined) return 0;
    const [, life, place] = /^([0-9a-f]{8})-([0-9]{1,15})$/.exec(cursor) ?? [];
    if (life === undefined) {
      throw new SandboxerError("bad_request", `"${cursor.slice(0, 50)}" is not a cursor of the event log.`, {
        hint: "Send the cursor of the last event that you received, or omit it.",
      });
    }
    return life === this.#life ? Number(place) : 0;
  }

  #record({ type, sandboxId, data }: NewEvent): EventRecord {
    const time = new Date(this.#clock.wallMs()).toISOString();
    return { cursor: this.#cursor(this.#appended), time, type, sandbox_id: sandboxId, data: { ...data } };
  }

  #cursor(place: number): string {
    return `${this.#life}-${place}`;
  }
}

/** The newest entries, up to a limit. */
class Ring<Entry> {
  readonly #limit: number;
  readonly #entries: Entry[] = [];
  /** The index of the oldest entry once the buffer is full. */
  #oldest = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(entry: Entry): void {
    if (this.#entries.length < this.#limit) {
      this.#entries.push(entry);
      return;
    }
    this.#entries[this.#oldest] = entry;
    this.#oldest = (this.#oldest + 1) % this.#limit;
  }

  /** Oldest first. */
  all(): Entry[] {
    return [...this.#entries.slice(this.#oldest), ...this.#entries.slice(0, this.#oldest)];
  }
}
