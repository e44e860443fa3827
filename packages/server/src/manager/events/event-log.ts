import { randomBytes } from "node:crypto";
import { SandboxerError, type EventRecord } from "@sandboxer/protocol";
import type { Clock } from "../../support/clock.ts";

export interface NewEvent {
  readonly type: string;
  readonly sandboxId: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

const KEEP_EVENTS = 10_000;

/**
 * What has happened on this server since its start, as far as it is kept. A cursor says where a reader is; one of an
 * earlier life of the server, or one whose events are gone, goes on with the oldest event that is there.
 */
export class EventLog {
  readonly #clock: Clock;
  readonly #life = randomBytes(4).toString("hex");
  /** Oldest first; the cursor of each is its place since the start. */
  readonly #events: EventRecord[] = [];
  readonly #listeners = new Set<(event: EventRecord) => void>();
  #appended = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  append(event: NewEvent): void {
    this.#appended += 1;
    const record = this.#record(event);
    this.#events.push(record);
    if (this.#events.length > KEEP_EVENTS) this.#events.shift();
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
    return this.#events.slice(this.#placeAfter(cursor));
  }

  /** Where a reader is that wants nothing of the past. */
  get end(): string {
    return this.#cursor(this.#appended);
  }

  listen(listener: (event: EventRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #placeAfter(cursor: string | undefined): number {
    if (cursor === undefined) return 0;
    const [, life, place] = /^([0-9a-f]{8})-([0-9]{1,15})$/.exec(cursor) ?? [];
    if (life === undefined) {
      throw new SandboxerError("bad_request", `"${cursor.slice(0, 50)}" is not a cursor of the event log.`, {
        hint: "Send the cursor of the last event that was seen, or none.",
      });
    }
    if (life !== this.#life) return 0;
    const oldest = this.#appended - this.#events.length;
    return Math.max(0, Number(place) - oldest);
  }

  #record({ type, sandboxId, data }: NewEvent): EventRecord {
    const time = new Date(this.#clock.wallMs()).toISOString();
    return { cursor: this.#cursor(this.#appended), time, type, sandbox_id: sandboxId, data: { ...data } };
  }

  #cursor(place: number): string {
    return `${this.#life}-${place}`;
  }
}
