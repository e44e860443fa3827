import { randomBytes } from "node:crypto";
import { SandboxerError, type EventRecord } from "@sandboxer/protocol";
import type { Clock } from "../../../support/clock.ts";

export interface NewEvent {
  readonly type: string;
  readonly sandboxId: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

interface Kept {
  /** Since the start. */
  readonly place: number;
  readonly record: EventRecord;
}

/** Of those that come as fast as programs start, and of all others: neither pushes the other out. */
const KEEP_EVENTS = 10_000;
const FREQUENT = "execution.";

/**
 * What has happened on this server since its start, as far as it is kept. A cursor says where a reader is; one of an
 * earlier life of the server, or one whose events are gone, goes on with the oldest event that is there.
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

  /** Only to who listens now: it is not kept, and its cursor is that of the last one that is. */
  tell(event: NewEvent): void {
    if (this.#listeners.size === 0) return;
    const record = this.#record(event);
    for (const listener of this.#listeners) listener(record);
  }

  /** Events after the cursor, oldest first; without one from the oldest that is there. */
  after(cursor: string | undefined): readonly EventRecord[] {
    const place = this.#placeOf(cursor);
    const kept = [...this.#events.all(), ...this.#frequent.all()].filter((event) => event.place > place);
    return kept.toSorted((left, right) => left.place - right.place).map(({ record }) => record);
  }

  /** Where a reader is that wants nothing of the past. */
  get end(): string {
    return this.#cursor(this.#appended);
  }

  listen(listener: (event: EventRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** 0: before all. */
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
  /** Where the oldest one is, once it is full. */
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
