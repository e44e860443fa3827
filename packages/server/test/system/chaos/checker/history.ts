/**
 * The observations of the clients and the fault injector of a chaos run, as plain data. All times are milliseconds of
 * the runner's own monotonic clock; servers are numbered from 0.
 */

/** `refused`: it is certain that nothing was done. `unknown`: the answer was lost, late or says nothing about it. */
export type Outcome = "acknowledged" | "refused" | "unknown";

/** One or more attempts at the same call, from the first request to the last answer. */
interface Call {
  readonly sentMs: number;
  readonly answeredMs: number;
}

/** Where a call was executed. */
interface Place {
  readonly server: number;
  /** The call was fenced with it, so that no other epoch can have executed it. */
  readonly epoch: number;
}

/** The contents of the sandbox in its answer. */
interface Shown {
  /** The numbers in its file, oldest first. */
  readonly log: readonly number[];
  /** Where the memory of its background process and the file differed; empty if they never did. */
  readonly broken: string;
}

/** The sandbox was created with {@link FIRST_NUMBER} in its file. */
export interface CreatedEvent extends Call, Place {
  readonly kind: "created";
}

/** A client wanted a number to be written once. It never uses the number again. */
export type StepEvent = Call & { readonly kind: "step"; readonly number: number } & (
    | ({ readonly outcome: "acknowledged" } & Place & Shown)
    | { readonly outcome: "refused" | "unknown" }
  );

/** Somebody else read the file, at any server that claims to run the sandbox. */
export interface ReadEvent extends Call, Place, Shown {
  readonly kind: "read";
}

/** The state was saved: the sandbox stopped (`pause`) or kept running (`live`). */
export interface SavedEvent extends Call, Place {
  readonly kind: "saved";
  readonly how: "pause" | "live";
}

/** A snapshot was acknowledged. */
export interface SnapshotEvent extends Call, Place {
  readonly kind: "snapshot";
  readonly snapshot: string;
}

/** A new sandbox from the snapshot showed this. */
export interface RestoredEvent extends Call, Shown {
  readonly kind: "restored";
  readonly snapshot: string;
}

/** A server said that there is no such sandbox. */
export interface MissingEvent {
  readonly kind: "missing";
  readonly atMs: number;
  readonly said: string;
}

/** The client asked for the sandbox to be deleted. */
export interface DeletedEvent extends Call {
  readonly kind: "deleted";
  readonly outcome: Outcome;
}

export type HistoryEvent =
  | CreatedEvent
  | StepEvent
  | ReadEvent
  | SavedEvent
  | SnapshotEvent
  | RestoredEvent
  | MissingEvent
  | DeletedEvent;

/** The number that a new sandbox begins with. */
export const FIRST_NUMBER = 0;

/** A fault that was injected. */
export interface InjectedFault {
  readonly name: string;
  /** `all`: every server at once. */
  readonly server: number | "all";
  readonly fromMs: number;
  /** Undefined while it lasts. */
  untilMs: number | undefined;
  /**
   * Whether what a server had executed and not saved may be lost by it. `undecided` until the server has ended: an
   * orderly stop that reports what it gave up may lose that, any other may not.
   */
  lossy: boolean | "undecided";
}
