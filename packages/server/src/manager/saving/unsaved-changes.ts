import type { MaxLoss } from "@sandboxer/protocol";

/** Why max_loss is not met. */
export interface AtRisk {
  /** ISO 8601. */
  readonly since: string;
  readonly reason: string;
  /** Whether a save failed; otherwise it is only late. */
  readonly hasFailed: boolean;
  readonly sinceMs: number;
  /** The max_loss at that time. */
  readonly maxLoss: MaxLoss | null;
}

/** The facts known right before a capture. */
export interface CaptureMark {
  readonly atMs: number;
  readonly activity: number;
  readonly turns: number;
  /** No process runs inside that could change it. */
  readonly quiet: boolean;
}

/**
 * Since when a sandbox may differ from its newest published checkpoint, and how many executions have ended since. It
 * may differ as soon as it is used, and always while processes run inside; anything unknown counts as a change.
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

  /** It runs here for the first time: the work of creating it is not lost with it. */
  noteStart(nowMs: number): void {
    if (this.#publishedMs === -Infinity) this.#sinceMs = nowMs;
  }

  /** It is in use. */
  noteUse(nowMs: number): void {
    this.#activity += 1;
    this.#sinceMs ??= nowMs;
  }

  /** An execution has ended. */
  noteTurn(nowMs: number): void {
    this.#turns += 1;
    this.noteUse(nowMs);
  }

  /** Take the mark before checking whether the sandbox is quiet, and that before the capture. */
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
