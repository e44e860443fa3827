import type { OutputBounds, OutputChunk, ProcessExit, SandboxProcess } from "../../backends/backend.ts";
import type { ContextActivity } from "../interpreter/context-activity.ts";
import type { ProcessTraits } from "./process-key.ts";
import { type FollowOptions, Moving, ReaderSlot } from "./reader-slot.ts";
import { SIGKILL, SIGTERM } from "./signals.ts";

/** Time between the request to end and the kill. */
const GRACE_MS = 2_000;
const TAIL_BYTES = 4096;

export interface ProcessHooks {
  /** Whether the sandbox was stopped here in order to continue on another server or later, with this process. */
  readonly isLeaving: () => boolean;
  /** Resolves when output may be read. */
  readonly hold: () => Promise<void>;
  /** Rejects when aborted. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly onExit: (outcome: "ok" | "error") => void;
  /** The hint for its failure; null: unknown. */
  readonly hint: (outputTail: string) => string | null;
  /** For the interpreter of a context: the cell that it runs. */
  readonly activity?: ContextActivity;
}

/**
 * A user's process from its start until it is dropped. It stays the same after a restore: the process, its log and its
 * traits are part of the sandbox.
 */
export class ManagedProcess {
  #traits: ProcessTraits;
  /** Null if nobody knows it: no server saw its start, and no saved state has it. */
  command: readonly string[] | null = null;
  /** ISO 8601; null as for the command. */
  startedAt: string | null = null;
  /** Whether this server started it. */
  startedHere = false;
  /** Whether this server killed it because of its time limit. */
  timedOut = false;
  /** Whether a client was told of its end, after all its output. */
  told = false;
  /** Responses that are being built from it: it is not dropped meanwhile. */
  waiting = 0;
  readonly #process: SandboxProcess;
  readonly #slot: ReaderSlot;
  readonly #hooks: ProcessHooks;
  #isWatched = false;
  #tail: Buffer = Buffer.alloc(0);

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
  /** For the interpreter of a context: the cell that it runs. */
  get activity(): ContextActivity | undefined {
    return this.#hooks.activity;
  }
  /** Whether it runs, and does not only wait for the next cell. */
  get working(): boolean {
    return this.running && (this.activity === undefined || this.activity.cell !== undefined);
  }
  /** Rejects when the sandbox ends first. */
  get exited(): Promise<ProcessExit> {
    return this.#process.exited;
  }
  /** Resolves when it no longer works. Rejects when the sandbox ends first. */
  async rested(): Promise<void> {
    const { activity, exited } = this;
    await (activity === undefined ? exited : Promise.race([exited, activity.idle()]));
  }
  get acknowledged(): number {
    return this.#process.acknowledged;
  }

  /** Whether a client has still to be told of its end. */
  get followed(): boolean {
    return this.#slot.followed;
  }

  /** Whether it can be dropped: it has ended, and no reader is left or expected. */
  get droppable(): boolean {
    const { exit, acknowledged } = this.#process;
    if (exit === undefined || this.waiting > 0 || this.#slot.taken) return false;
    return this.told || !this.traits.kept || acknowledged >= exit.outputEnd;
  }

  /** The maximum size of its log in the sandbox. */
  get keptBytes(): number {
    const { exit, acknowledged } = this.#process;
    return (exit?.outputEnd ?? acknowledged) - acknowledged + Math.min(acknowledged, 256 * 1024);
  }

  bounds(): Promise<OutputBounds> {
    return this.#process.bounds();
  }

  /** Where output from a requested offset will begin: older bytes may have been dropped, newer ones not written yet. */
  async startOf(from: number | undefined): Promise<number> {
    const { start, end } = await this.bounds().catch((error: unknown) => {
      throw this.#reasonOf(error);
    });
    return Math.min(Math.max(from ?? this.acknowledged, start), end);
  }

  /** Output to its end. After a stop, by another reader or a save, the next chunk is an error that says so. */
  async *follow(options: Omit<FollowOptions, "background">): AsyncIterable<OutputChunk> {
    try {
      for await (const chunk of this.#slot.follow(options)) {
        this.#noteTail(chunk.data);
        yield chunk;
      }
    } catch (error) {
      throw this.#reasonOf(error);
    }
  }

  /** The hint for its failure, once its output was read; null: it did not fail, or nothing is known. */
  get hint(): string | null {
    const { exit } = this.#process;
    return exit === undefined || exit.code === 0 ? null : this.#hooks.hint(this.#tail.toString("utf8"));
  }

  #noteTail(data: Uint8Array): void {
    const newest = data.subarray(-TAIL_BYTES);
    const kept = newest.length < TAIL_BYTES ? this.#tail.subarray(newest.length - TAIL_BYTES) : Buffer.alloc(0);
    this.#tail = Buffer.concat([kept, newest]);
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

  /** Before a save: readers are told while nothing has changed yet. */
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

  /** Kills it if it runs, and drops it. A process whose log is full ends only if its output is read. */
  async release(): Promise<void> {
    if (this.running) {
      await this.kill();
      await this.#readAlong();
      await this.exited;
    }
    await this.#process.release();
  }

  /** A reader that arrives during a save gets an error from the sandbox; the true reason is the move. */
  #reasonOf(error: unknown): unknown {
    return this.#hooks.isLeaving() ? new Moving() : error;
  }

  /** Reads a detached process without a reader, so that it never blocks. */
  #keepUp(): void {
    if (!this.traits.detached) return;
    // If it ends early, another reader came, or the sandbox ended.
    void this.#readAlong().catch(() => {});
  }

  async #readAlong(): Promise<void> {
    const from = this.acknowledged;
    for await (const chunk of this.#slot.follow({ from, background: true })) {
      this.activity?.see(chunk);
      this.acknowledge(chunk.offset + chunk.data.length);
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
      // Also if its leader has ended: others of its group may still run.
      await this.signal(SIGKILL, "group");
    } catch {
      // It ended in time, was dropped, or its sandbox ended.
    }
  }
}
