import type { MaxLoss } from "@sandboxer/protocol";

/** Why more of a sandbox could be lost than was promised. */
export interface AtRisk {
  /** ISO 8601. */
  readonly since: string;
  readonly reason: string;
  /** Whether a save has failed; else it is only late. */
  readonly hasFailed: boolean;
  readonly sinceMs: number;
  /** What was promised then. */
  readonly maxLoss: MaxLoss | null;
}

/** What was known of a sandbox right before it was captured. */
export interface CaptureMark {
  readonly atMs: number;
  readonly activity: number;
  readonly turns: number;
  /** Nothing lives inside that could change it by itself. */
  readonly quiet: boolean;
}

/**
 * Since when a sandbox may differ from its newest published checkpoint, and how many executions have ended since. It may
 * as soon as somebody uses it, and always while something lives inside; what is not known counts as a change.
 */
export class UnsavedChanges {
  #activity = 0;
  #turns = 0;
  #savedTurns = 0;
  #sinceMs: number | undefined;
  #publishedMs = -Infinity;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /** By the monotonic clock; undefined: nothing can have changed. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** When a state was last published, by the monotonic clock. */
  get publishedMs(): number {
    return this.#publishedMs;
  }

  /** Executions that have ended since. */
  get turns(): number {
    return this.#turns - this.#savedTurns;
  }

  /** It runs, for the first time here: what was done to make it is not lost with it. */
  noteStart(nowMs: number): void {
    if (this.#publishedMs === -Infinity) this.#sinceMs = nowMs;
  }

  /** Somebody uses it. */
  noteUse(nowMs: number): void {
    this.#activity += 1;
    this.#sinceMs ??= nowMs;
  }

  /** An execution has ended. */
  noteTurn(nowMs: number): void {
    this.#turns += 1;
    this.noteUse(nowMs);
  }

  /** To be taken before it is looked whether the sandbox is quiet, and that before the capture. */
  mark(nowMs: number): Omit<CaptureMark, "quiet"> {
    return { atMs: nowMs, activity: this.#activity, turns: this.#turns };
  }

  /** The state that was captured after the mark is published. */
  published({ atMs, activity, turns, quiet }: CaptureMark, nowMs: number): void {
    this.#publishedMs = nowMs;
    this.#savedTurns = turns;
    this.#sinceMs = quiet && activity === this.#activity ? undefined : atMs;
  }
}
