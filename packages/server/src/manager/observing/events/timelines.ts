import type { EventRecord } from "@sandboxer/protocol";
import { mapAtOnce } from "../../../support/map-at-once.ts";
import type { EventLog } from "./event-log.ts";
import type { PlacedEvent, StoredTimelines } from "./stored-timeline.ts";

/** A killed server loses at most this much of a timeline. */
const WRITE_AFTER_MS = 60_000;
/** The last events of a sandbox that has left. */
const WRITE_LEFT_AFTER_MS = 200;
const KEEP_EVENTS = 200;
const WRITES_AT_ONCE = 16;
const REMOVE_EVERY_EPOCHS = 8;
/** Programs start and end too often: the owner shows them while it has them. */
const NOT_STORED = "execution.";

/** The events of a sandbox while this server owns it. */
interface Tenure {
  epoch: number | undefined;
  readonly events: EventRecord[];
  timer: NodeJS.Timeout | undefined;
  timerMs: number;
}

export interface TimelinesOptions {
  readonly log: EventLog;
  readonly stored: StoredTimelines;
  /** The epoch of a sandbox that this server owns, and that can run elsewhere later; undefined otherwise. */
  readonly epochOf: (sandboxId: string) => number | undefined;
  readonly isDeleted: (sandboxId: string) => Promise<boolean>;
  readonly onProblem: (message: string, error: unknown) => void;
}

/**
 * One timeline for each sandbox, wherever it was. The owner keeps its part in memory, and writes it to the store after a
 * minute and when the sandbox leaves.
 */
export class Timelines {
  readonly #options: TimelinesOptions;
  readonly #tenures = new Map<string, Tenure>();
  readonly #tenureOf = new WeakMap<EventRecord, Tenure>();
  readonly #writing = new Set<Promise<void>>();

  constructor(options: TimelinesOptions) {
    this.#options = options;
    options.log.listen((event) => this.#note(event));
  }

  /** All events of a sandbox after the cursor, also of earlier owners if the store answers, oldest first. */
  async after(sandboxId: string, cursor: string | undefined): Promise<readonly EventRecord[]> {
    const { log, stored } = this.#options;
    // While the store is unavailable, this server has at least its own.
    const earlier = await stored.read(sandboxId).catch(() => []);
    const own = log.after(undefined).filter(({ sandbox_id }) => sandbox_id === sandboxId);
    const known = new Set(own.map((event) => event.cursor));
    const placed = [
      ...earlier.filter(({ event }) => !known.has(event.cursor)),
      ...own.map((event) => ({ epoch: this.#tenureOf.get(event)?.epoch ?? Number.POSITIVE_INFINITY, event })),
    ];
    const all = placed.toSorted(byPlace).map(({ event }) => event);
    const place = cursor === undefined ? -1 : all.findIndex((event) => event.cursor === cursor);
    // A cursor of this server may be that of an event of another sandbox.
    if (place === -1 && cursor !== undefined && log.isOwn(cursor)) {
      const later = new Set(log.after(cursor).map((event) => event.cursor));
      return all.filter((event) => later.has(event.cursor));
    }
    return all.slice(place + 1);
  }

  /** Writes everything that is not written yet, before the server ends. */
  async flush(): Promise<void> {
    const unwritten = [...this.#tenures].filter(([, { timer }]) => timer !== undefined);
    await mapAtOnce(unwritten, WRITES_AT_ONCE, ([sandboxId]) => this.#begin(sandboxId));
    await Promise.all(this.#writing);
  }

  #note(event: EventRecord): void {
    const { sandbox_id: sandboxId, type } = event;
    if (sandboxId === null || type === "operation.progress") return;
    const epoch = this.#options.epochOf(sandboxId);
    const known = this.#tenures.get(sandboxId);
    const isNext = epoch !== undefined && known?.epoch !== undefined && known.epoch !== epoch;
    if (isNext) void this.#begin(sandboxId);
    const tenure: Tenure = known === undefined || isNext ? { epoch, events: [], timer: undefined, timerMs: 0 } : known;
    tenure.epoch ??= epoch;
    this.#tenureOf.set(event, tenure);
    if (type.startsWith(NOT_STORED)) return;
    tenure.events.push(event);
    if (tenure.events.length > KEEP_EVENTS) tenure.events.shift();
    this.#tenures.set(sandboxId, tenure);
    // Before the claim, as after the end, this server does not own it.
    const hasLeft = epoch === undefined && tenure.epoch !== undefined;
    this.#writeIn(sandboxId, tenure, hasLeft ? WRITE_LEFT_AFTER_MS : WRITE_AFTER_MS);
  }

  #writeIn(sandboxId: string, tenure: Tenure, ms: number): void {
    if (tenure.timer !== undefined && tenure.timerMs <= ms) return;
    clearTimeout(tenure.timer);
    tenure.timerMs = ms;
    tenure.timer = setTimeout(() => void this.#begin(sandboxId), ms).unref();
  }

  async #begin(sandboxId: string): Promise<void> {
    const writing = this.#write(sandboxId).catch((error: unknown) =>
      this.#options.onProblem("the events of a sandbox could not be stored", error),
    );
    this.#writing.add(writing);
    await writing;
    this.#writing.delete(writing);
  }

  async #write(sandboxId: string): Promise<void> {
    const tenure = this.#tenures.get(sandboxId);
    if (tenure === undefined) return;
    clearTimeout(tenure.timer);
    tenure.timer = undefined;
    const { stored, epochOf, isDeleted } = this.#options;
    tenure.epoch ??= epochOf(sandboxId);
    const { epoch } = tenure;
    const hasLeft = epochOf(sandboxId) !== epoch || epoch === undefined;
    if (hasLeft) this.#tenures.delete(sandboxId);
    // Never owned here; or its timeline went with it.
    if (epoch === undefined || (hasLeft && (await isDeleted(sandboxId)))) return;
    await stored.write(sandboxId, epoch, tenure.events);
    // Now and then is enough.
    if (hasLeft && epoch % REMOVE_EVERY_EPOCHS === 0) await stored.removeOld(sandboxId);
  }
}

/** In the order of owners; an owner's in its own order. Clocks of servers differ, so times decide nothing. */
function byPlace(left: PlacedEvent, right: PlacedEvent): number {
  if (left.epoch !== right.epoch) return left.epoch < right.epoch ? -1 : 1;
  return placeOf(left.event) - placeOf(right.event);
}

function placeOf({ cursor }: EventRecord): number {
  return Number(cursor.slice(cursor.indexOf("-") + 1));
}
