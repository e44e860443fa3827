import { excuseFor, type Executed } from "./excuses.ts";
import {
  FIRST_NUMBER,
  type CreatedEvent,
  type DeletedEvent,
  type HistoryEvent,
  type InjectedFault,
  type MissingEvent,
  type ReadEvent,
  type RestoredEvent,
  type SavedEvent,
  type SnapshotEvent,
  type StepEvent,
} from "./history.ts";
import { OwnerHistory } from "./owner-history.ts";
import { commonLength, firstRepeated, shown } from "./numbers.ts";
import { SnapshotValues } from "./snapshot-values.ts";
import type { Rule, Violation } from "./violation.ts";

type AcknowledgedStep = Extract<StepEvent, { outcome: "acknowledged" }>;

/** A number as far as it is known: unknown steps have no server, and no epoch until they are seen in the file. */
interface Written extends Executed {
  readonly outcome: StepEvent["outcome"];
  /** It was executed at this epoch or before. */
  readonly epoch?: number;
}

/**
 * Holds the history of one sandbox against what servers promise. Its client sends one step after the other, so that after
 * each acknowledged step the contents of the file are known exactly. A step without an answer may have been executed, may
 * still be, or never will; any other number in the file, a missing one or one that comes back is a violation.
 *
 * A prefix of the file is durable when its save was acknowledged, or when a later epoch showed it: no fault may touch it.
 * Later steps may be lost only with the server that executed them.
 */
export class SandboxChecker {
  readonly #faults: readonly InjectedFault[];
  readonly #owners = new OwnerHistory();
  readonly #written = new Map<number, Written>();
  /** When the file no longer had a number that it had had. */
  readonly #lostMs = new Map<number, number>();
  readonly #snapshots = new SnapshotValues();
  readonly #found: { readonly violation: Violation; readonly unless?: Executed }[] = [];
  /** The content of the file, seen at this epoch. */
  #known: readonly number[] = [];
  #epoch = 0;
  #durableLength = 0;
  #deleted: DeletedEvent | undefined;

  constructor(faults: readonly InjectedFault[]) {
    this.#faults = faults;
  }

  /** Takes the events in the order of their answers. */
  take(event: HistoryEvent): void {
    switch (event.kind) {
      case "created":
        return this.#created(event);
      case "step":
        return event.outcome === "acknowledged" ? this.#step(event) : this.#unanswered(event);
      case "read":
        return this.#read(event);
      case "saved":
        return this.#saved(event);
      case "snapshot":
        return this.#snapshot(event);
      case "restored":
        return this.#restored(event);
      case "missing":
        return this.#missing(event);
      case "deleted":
        this.#deleted = event.outcome === "refused" ? this.#deleted : event;
    }
  }

  /** The violations so far. A server that is still stopping may explain some. */
  get violations(): readonly Violation[] {
    return this.#found
      .filter(({ unless }) => unless === undefined || excuseFor(unless, this.#faults) === "none")
      .map(({ violation }) => violation);
  }

  #created(event: CreatedEvent): void {
    this.#owners.take(event);
    this.#written.set(FIRST_NUMBER, { ...event, outcome: "acknowledged" });
    this.#known = [FIRST_NUMBER];
    this.#epoch = event.epoch;
  }

  #unanswered({ number, outcome, sentMs }: StepEvent): void {
    this.#written.set(number, { outcome, sentMs, server: undefined });
  }

  #step(event: AcknowledgedStep): void {
    const { number, log, epoch } = event;
    this.#written.set(number, event);
    this.#answered(event);
    if (log.at(-1) !== number) this.#report("lost write", `Step ${number} was acknowledged with ${shown(log)}.`);
    const kept = commonLength(this.#known, log);
    this.#judgeLost(kept, event);
    this.#judgeAdded(log.slice(kept), number);
    for (const lost of this.#known.slice(kept)) this.#lostMs.set(lost, event.answeredMs);
    for (const seen of log) {
      const written = this.#written.get(seen);
      if (written !== undefined) this.#written.set(seen, { ...written, epoch: written.epoch ?? epoch });
    }
    this.#durableLength = Math.max(Math.min(this.#durableLength, kept), this.#olderThan(epoch, log));
    this.#known = log;
    this.#epoch = epoch;
  }

  /** Another server began the epoch with a saved state: that holds everything that older epochs executed. */
  #olderThan(epoch: number, log: readonly number[]): number {
    const first = log.findIndex((number) => (this.#written.get(number)?.epoch ?? epoch) >= epoch);
    return first === -1 ? log.length : first;
  }

  #judgeLost(kept: number, { log }: AcknowledgedStep): void {
    if (kept < this.#durableLength) {
      const durable = shown(this.#known.slice(0, this.#durableLength));
      return this.#report("stale restore", `The state ${durable} was saved, and the file holds ${shown(log)}.`);
    }
    for (const number of this.#known.slice(kept)) {
      const written = this.#written.get(number);
      if (written === undefined) continue;
      const what = `Step ${number} is missing: ${shown(this.#known)} became ${shown(log)}.`;
      this.#reportUnlessExcused("lost write", what, written);
    }
  }

  #judgeAdded(added: readonly number[], present: number): void {
    for (const number of added.filter((each) => each !== present)) {
      const written = this.#written.get(number);
      if (this.#lostMs.has(number)) this.#report("stale restore", `Step ${number} was lost, and has come back.`);
      else if (written === undefined) this.#report("unexplained write", `Nobody asked for step ${number}.`);
      else if (written.outcome === "refused")
        this.#report("unexplained write", `Step ${number} was refused, and executed.`);
    }
  }

  /** Holds for every content of a sandbox. */
  #answered(event: AcknowledgedStep | ReadEvent): void {
    this.#owned(event);
    const repeated = firstRepeated(event.log);
    if (repeated !== undefined) this.#report("double execution", `Step ${repeated} is twice in ${shown(event.log)}.`);
    if (event.broken !== "") this.#report("torn state", event.broken);
    if (this.#deleted?.outcome === "acknowledged" && event.sentMs > this.#deleted.answeredMs) {
      this.#report("resurrected sandbox", `Server ${event.server} runs it after its deletion was acknowledged.`);
    }
  }

  #read(event: ReadEvent): void {
    this.#answered(event);
    const back = event.log.find((number) => (this.#lostMs.get(number) ?? Infinity) < event.sentMs);
    if (back !== undefined)
      this.#report("stale restore", `Step ${back} was lost, and server ${event.server} shows it.`);
  }

  #saved(event: SavedEvent): void {
    this.#owned(event);
    // At another epoch than the file was seen at, what was saved is not known.
    if (event.epoch === this.#epoch) this.#durableLength = this.#known.length;
  }

  #snapshot(event: SnapshotEvent): void {
    this.#owned(event);
    if (event.epoch !== this.#epoch) return;
    const unknown = [...this.#written].filter(([, { outcome }]) => outcome === "unknown").map(([number]) => number);
    this.#snapshots.add(event.snapshot, this.#known, new Set(unknown));
  }

  #restored({ snapshot, log, broken }: RestoredEvent): void {
    const wrong = this.#snapshots.differenceOf(snapshot, log);
    if (wrong !== undefined) this.#report("wrong snapshot", wrong);
    if (broken !== "") this.#report("torn state", `In a copy of snapshot ${snapshot}: ${broken}`);
  }

  #missing({ said }: MissingEvent): void {
    if (this.#deleted !== undefined) return;
    const first = this.#written.get(FIRST_NUMBER);
    if (this.#durableLength > 0 || first === undefined) this.#report("missing sandbox", `It was saved. ${said}`);
    else this.#reportUnlessExcused("missing sandbox", said, first);
  }

  #owned(event: AcknowledgedStep | ReadEvent | SavedEvent | SnapshotEvent): void {
    const violation = this.#owners.take(event);
    if (violation !== undefined) this.#found.push({ violation });
  }

  #report(rule: Rule, what: string): void {
    this.#found.push({ violation: { rule, what } });
  }

  #reportUnlessExcused(rule: Rule, what: string, executed: Executed): void {
    const excuse = excuseFor(executed, this.#faults);
    if (excuse === "excused") return;
    this.#found.push({ violation: { rule, what }, ...(excuse === "undecided" ? { unless: executed } : {}) });
  }
}
