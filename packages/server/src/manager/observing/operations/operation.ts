import { asSandboxerError, type OperationKind, type OperationRecordBody } from "@sandboxer/protocol";
import type { Progress } from "../../../support/call-options.ts";
import type { Clock } from "../../../support/clock.ts";
import { cutMessage } from "../../../support/cut-message.ts";
import { Stopwatch } from "./stopwatch.ts";

export interface OperationSubject {
  readonly sandboxId?: string;
  readonly snapshotId?: string;
}

export type OperationChange = "started" | "progress" | "ended";

/** An operation that takes a while: its current phase, progress and result. */
export class Operation {
  readonly id: string;
  readonly kind: OperationKind;
  /** The caller; undefined: the server itself. */
  readonly callerId: string | undefined;
  /** Settles when the operation ends. Never rejects. */
  readonly ended: Promise<void>;
  /** Sandboxes that ended because of the operation, besides its subject. */
  readonly destroyed: string[] = [];
  readonly #clock: Clock;
  readonly #stopwatch: Stopwatch;
  readonly #startedAtMs: number;
  readonly #onChange: (operation: Operation, change: OperationChange) => void;
  readonly #end = Promise.withResolvers<void>();
  #subject: OperationSubject;
  #phase: string | null = null;
  #progress: Progress | undefined;
  #endedAtMs: number | undefined;
  #elapsedMs: number | undefined;
  #pausedMs: number | undefined;
  #error: OperationRecordBody["error"] = null;
  #result: unknown = null;

  constructor(
    id: string,
    kind: OperationKind,
    subject: OperationSubject,
    callerId: string | undefined,
    clock: Clock,
    onChange: (operation: Operation, change: OperationChange) => void,
  ) {
    this.id = id;
    this.kind = kind;
    this.callerId = callerId;
    this.#subject = subject;
    this.#clock = clock;
    this.#stopwatch = new Stopwatch(clock);
    this.#startedAtMs = clock.wallMs();
    this.#onChange = onChange;
    this.ended = this.#end.promise;
    onChange(this, "started");
  }

  get running(): boolean {
    return this.#endedAtMs === undefined;
  }

  /** The subject may become known only later: the id of a new sandbox or snapshot. */
  concerns(subject: OperationSubject): void {
    this.#subject = { ...this.#subject, ...subject };
  }

  /** Ends the present phase and names it. */
  lap(phase: string): void {
    this.#stopwatch.lap(phase);
    this.#progress = undefined;
    this.#phase = null;
    this.#onChange(this, "progress");
  }

  /** The processes inside were stopped for this long, in addition to earlier stops. */
  paused(ms: number): void {
    this.#pausedMs = Math.round(((this.#pausedMs ?? 0) + ms) * 10) / 10;
  }

  readonly onProgress = (progress: Progress): void => {
    this.#phase = progress.phase;
    this.#progress = progress;
    this.#onChange(this, "progress");
  };

  /** The first end counts. */
  finish(outcome: { readonly result?: unknown } | { readonly error: unknown }): void {
    if (!this.running) return;
    this.#endedAtMs = this.#clock.wallMs();
    this.#elapsedMs = this.#stopwatch.elapsedMs;
    this.#phase = null;
    if ("error" in outcome) {
      const { code, message, hint } = asSandboxerError(outcome.error);
      this.#error = { code, message: cutMessage(message), hint };
    } else this.#result = outcome.result ?? null;
    this.#onChange(this, "ended");
    this.#end.resolve();
  }

  /** With its response, which may contain a token: only for the caller. */
  recordFor(callerId: string): OperationRecordBody {
    return { ...this.record(), result: callerId === this.callerId ? this.#result : null };
  }

  /** For everyone: without its response. */
  record(): OperationRecordBody {
    return {
      id: this.id,
      kind: this.kind,
      state: this.running ? "running" : this.#error === null ? "done" : "failed",
      sandbox_id: this.#subject.sandboxId ?? null,
      snapshot_id: this.#subject.snapshotId ?? null,
      phase: this.#phase,
      phases: { ...this.#stopwatch.phases },
      done_bytes: this.#progress?.doneBytes ?? null,
      total_bytes: this.#progress?.totalBytes ?? null,
      started_at: new Date(this.#startedAtMs).toISOString(),
      ended_at: this.#endedAtMs === undefined ? null : new Date(this.#endedAtMs).toISOString(),
      elapsed_ms: this.#elapsedMs ?? this.#stopwatch.elapsedMs,
      paused_ms: this.#pausedMs ?? null,
      error: this.#error,
      result: null,
    };
  }
}
