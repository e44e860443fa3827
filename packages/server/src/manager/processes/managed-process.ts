import type { OutputBounds, OutputChunk, ProcessExit, SandboxProcess } from "../../backends/backend.ts";
import type { ProcessTraits } from "./process-key.ts";
import { type FollowOptions, Moving, ReaderSlot } from "./reader-slot.ts";
import { SIGKILL, SIGTERM } from "./signals.ts";

/** Between the request to end and the end. */
const GRACE_MS = 2_000;

export interface ProcessHooks {
  /** Whether the sandbox was stopped here in order to continue on another server or later, with this process. */
  readonly isLeaving: () => boolean;
  /** Resolves when output may be heard. */
  readonly hold: () => Promise<void>;
  /** Rejects when aborted. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly onExit: (outcome: "ok" | "error") => void;
}

/**
 * A process of a user's, from its start until it is dropped. It is the same one after a restore: the process, its log and
 * its traits are part of the sandbox.
 */
export class ManagedProcess {
  #traits: ProcessTraits;
  /** Null for one whose start this server did not see. */
  command: readonly string[] | null = null;
  /** Whether this server killed it for its time. */
  timedOut = false;
  /** Whether a client was told of its end, with all output before that. */
  told = false;
  /** Answers that are being made of it: it is not dropped meanwhile. */
  waiting = 0;
  readonly #process: SandboxProcess;
  readonly #slot: ReaderSlot;
  readonly #hooks: ProcessHooks;
  #isWatched = false;

  constructor(process: SandboxProcess, traits: ProcessTraits, hooks: ProcessHooks) {
    this.#process = process;
    this.#traits = traits;
    this.#hooks = hooks;
    this.#slot = new ReaderSlot(process, { hold: hooks.hold, onFree: () => this.#keepUp() });
    this.#keepUp();
  }

  /** Reports its end once, even if it has already ended, and enforces its time limit. */
  watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.exited.then(
      () => this.#hooks.onExit("ok"),
      () => this.#hooks.onExit("error"),
    );
    const { timeoutMs } = this.traits;
    if (timeoutMs !== undefined && this.running) void this.#limit(timeoutMs, this.#hooks);
  }

  get traits(): ProcessTraits {
    return this.#traits;
  }
  get id(): string {
    return this.#traits.id;
  }
  get pid(): number {
    return this.#process.pid;
  }
  get running(): boolean {
    return this.#process.exit === undefined;
  }
  get exit(): ProcessExit | undefined {
    return this.#process.exit;
  }
  /** Rejects when the sandbox ends first. */
  get exited(): Promise<ProcessExit> {
    return this.#process.exited;
  }
  get acknowledged(): number {
    return this.#process.acknowledged;
  }

  /** Whether a client is there that has still to hear of its end. */
  get followed(): boolean {
    return this.#slot.followed;
  }

  /** Whether nobody would miss it: it has ended, and no reader is there or has to come. */
  get droppable(): boolean {
    const { exit, acknowledged } = this.#process;
    if (exit === undefined || this.waiting > 0 || this.#slot.taken) return false;
    return this.told || !this.traits.kept || acknowledged >= exit.outputEnd;
  }

  /** What its log costs the sandbox at most. */
  get keptBytes(): number {
    const { exit, acknowledged } = this.#process;
    return (exit?.outputEnd ?? acknowledged) - acknowledged + Math.min(acknowledged, 256 * 1024);
  }

  bounds(): Promise<OutputBounds> {
    return this.#process.bounds();
  }

  /** Where output that is asked for from an offset will begin: older bytes may be gone, newer ones not there yet. */
  async startOf(from: number | undefined): Promise<number> {
    const { start, end } = await this.bounds().catch((error: unknown) => {
      throw this.#reasonOf(error);
    });
    return Math.min(Math.max(from ?? this.acknowledged, start), end);
  }

  /** Output to its end. After a stop, by another reader or a save, the next chunk is an error that says so. */
  async *follow(options: Omit<FollowOptions, "background">): AsyncIterable<OutputChunk> {
    try {
      yield* this.#slot.follow(options);
    } catch (error) {
      throw this.#reasonOf(error);
    }
  }

  look(from: number | undefined): ReturnType<ReaderSlot["look"]> {
    return this.#slot.look(from);
  }

  acknowledge(offset: number): void {
    if (offset > this.acknowledged) this.#process.acknowledge(offset);
  }

  /** Makes an execution a process in the background, which the server reads so that it never blocks. */
  detach(): void {
    this.#traits = { ...this.#traits, execution: false, detached: true };
    this.#keepUp();
  }

  /** Before a save: whoever reads is told, while nothing has changed yet. */
  quiesce(): void {
    this.#slot.stop(new Moving());
  }

  writeStdin(data: Uint8Array): Promise<void> {
    return this.#process.writeStdin(data);
  }
  closeStdin(): Promise<void> {
    return this.#process.closeStdin();
  }
  resize(rows: number, columns: number): Promise<void> {
    return this.#process.resize(rows, columns);
  }
  signal(signal: number, scope: "process" | "group"): Promise<void> {
    return this.#process.signal(signal, scope);
  }

  async kill(): Promise<void> {
    if (this.running) await this.signal(SIGKILL, "group");
  }

  /** Kills it if it runs, and drops it. A process whose log is full ends only when somebody reads. */
  async release(): Promise<void> {
    if (this.running) {
      await this.kill();
      await this.#readAlong();
      await this.exited;
    }
    await this.#process.release();
  }

  /** A reader that arrives while its sandbox is being saved gets an error from the sandbox; the true reason is the move. */
  #reasonOf(error: unknown): unknown {
    return this.#hooks.isLeaving() ? new Moving() : error;
  }

  /** A detached process that nobody reads is read here, so that it never blocks. */
  #keepUp(): void {
    if (!this.traits.detached) return;
    // When it ends early, another reader has come, or the sandbox has gone.
    void this.#readAlong().catch(() => {});
  }

  async #readAlong(): Promise<void> {
    const from = this.acknowledged;
    for await (const { offset, data } of this.#slot.follow({ from, background: true })) {
      this.acknowledge(offset + data.length);
    }
  }

  async #limit(timeoutMs: number, { sleep }: ProcessHooks): Promise<void> {
    const over = new AbortController();
    this.exited.then(
      () => over.abort(),
      () => over.abort(),
    );
    try {
      await sleep(timeoutMs, over.signal);
      this.timedOut = true;
      await this.signal(SIGTERM, "group");
      await sleep(GRACE_MS);
      // Also when its leader has ended: others of its group may not have.
      await this.signal(SIGKILL, "group");
    } catch {
      // It has ended in time, or was dropped, or its sandbox is gone.
    }
  }
}
