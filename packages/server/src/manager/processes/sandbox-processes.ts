import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxHandle, SandboxProcess } from "../../backends/backend.ts";
import { ManagedProcess, type ProcessHooks } from "./managed-process.ts";
import { parseProcessKey, type ProcessTraits } from "./process-key.ts";

/** This many ended processes without a reader are remembered, with this much output. */
const MAX_ENDED = 64;
const MAX_ENDED_BYTES = 16 * 1024 * 1024;

/** The facts about a process in a saved state. */
interface KnownFacts {
  readonly id: string;
  readonly command: readonly string[] | null;
  readonly started_at: string | null;
}

type HooksOf = (traits: ProcessTraits) => ProcessHooks;

/** The processes of one sandbox that its users started, as far as this server knows. */
export class SandboxProcesses {
  /** Oldest first. */
  readonly #known = new Map<SandboxProcess, ManagedProcess>();
  /** Processes that do not keep the sandbox from being idle. */
  readonly #waiting = new WeakSet<ManagedProcess>();

  #recalled: Promise<void> = Promise.resolve();

  /** Settles when commands and start times from a saved state are known, as far as they can be. Never rejects. */
  get recalled(): Promise<void> {
    return this.#recalled;
  }

  /** The processes came with a saved state: their commands and start times are in its records. */
  recall(notes: Promise<readonly KnownFacts[]>): void {
    const apply = (all: readonly KnownFacts[]): void => {
      const byId = new Map(all.map((note) => [note.id, note]));
      for (const process of this.all) {
        const note = byId.get(process.id);
        process.command ??= note?.command ?? null;
        process.startedAt ??= note?.started_at ?? null;
      }
    };
    this.#recalled = notes.then(apply, () => {});
  }

  get all(): readonly ManagedProcess[] {
    return [...this.#known.values()];
  }

  /** Processes that were started over HTTP. */
  get overHttp(): readonly ManagedProcess[] {
    return this.all.filter(({ traits }) => !traits.execution && traits.context === undefined);
  }

  /** The interpreters of contexts. */
  get contexts(): readonly ManagedProcess[] {
    return this.all.filter(({ traits }) => traits.context !== undefined);
  }

  /** The current execution, or the last one. */
  get execution(): ManagedProcess | undefined {
    return this.all.findLast(({ traits }) => traits.execution);
  }

  /** Whether an execution runs, or its client has still to be told of its end. */
  get executing(): boolean {
    const { execution } = this;
    return execution !== undefined && (execution.running || execution.followed);
  }

  checkNotExecuting(refusal: string): void {
    if (this.executing) throw new SandboxerError("execution_in_progress", refusal);
  }

  get running(): boolean {
    return this.all.some((process) => process.running);
  }

  /** The running processes that keep the sandbox from being idle. */
  get busy(): readonly ManagedProcess[] {
    return this.all.filter((process) => process.working && !this.#waiting.has(process));
  }

  /** The present processes only wait for requests, which keep the sandbox from being idle themselves. */
  waitForRequests(): void {
    for (const process of this.all) this.#waiting.add(process);
  }

  /** Whether a process runs whose user would notice the end of the sandbox. */
  get attended(): boolean {
    return this.all.some((process) => process.running && !process.traits.detached);
  }

  /** Whether a process runs that does not only wait for the next cell. */
  get working(): boolean {
    return this.all.some((process) => process.working);
  }

  /** Resolves when none works. Never rejects. */
  async quiet(): Promise<void> {
    while (this.working) {
      const working = this.all.filter((process) => process.working);
      await Promise.allSettled(working.map((process) => process.rested()));
      // The exit of a process whose sandbox has ended never comes.
      if (working.every((process) => process.working)) return;
    }
  }

  /** Synchronizes with the sandbox: adds new processes and forgets missing ones. */
  async sync(handle: Pick<SandboxHandle, "processes">, hooksOf: HooksOf): Promise<void> {
    // A process that is started meanwhile may be missing in the response.
    const before = [...this.#known.keys()];
    const present = new Set(await handle.processes());
    for (const process of before) if (!present.has(process)) this.#known.delete(process);
    this.#takeAll(present, hooksOf);
  }

  /** Another copy of the sandbox runs from now on, with these processes. */
  replace(present: Iterable<SandboxProcess>, hooksOf: HooksOf): void {
    this.#known.clear();
    this.#takeAll(present, hooksOf);
  }

  #takeAll(processes: Iterable<SandboxProcess>, hooksOf: HooksOf): void {
    for (const process of processes) {
      const traits = parseProcessKey(process.key);
      if (traits === undefined) continue;
      const managed = this.take(process, traits, hooksOf);
      // The end of an ended process was already reported, here or by the previous server.
      if (managed.running) managed.watch();
    }
  }

  take(process: SandboxProcess, traits: ProcessTraits, hooksOf: HooksOf): ManagedProcess {
    const managed = this.#known.get(process) ?? new ManagedProcess(process, traits, hooksOf(traits));
    // As in the sandbox's own list, newest last.
    this.#known.delete(process);
    this.#known.set(process, managed);
    return managed;
  }

  forget(process: ManagedProcess): void {
    for (const [key, known] of this.#known) if (known === process) this.#known.delete(key);
  }

  /** Before a save: every reader is told that the sandbox moves. */
  quiesce(): void {
    for (const process of this.all) process.quiesce();
  }

  /** The oldest processes that must be forgotten to stay within the limits. */
  surplus(): ManagedProcess[] {
    const droppable = this.overHttp.filter((process) => process.droppable);
    let bytes = droppable.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
    return droppable.filter((process, index) => {
      const over = droppable.length - index > MAX_ENDED || bytes > MAX_ENDED_BYTES;
      if (over) bytes -= process.keptBytes;
      return over;
    });
  }
}
