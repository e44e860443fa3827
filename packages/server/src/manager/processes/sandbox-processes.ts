import type { SandboxProcess } from "../../backends/backend.ts";
import { ManagedProcess, type ProcessHooks } from "./managed-process.ts";
import { parseProcessKey, type ProcessTraits } from "./process-key.ts";

/** Of the processes that have ended and that nobody waits for, so many are remembered, with so much output. */
const MAX_ENDED = 64;
const MAX_ENDED_BYTES = 16 * 1024 * 1024;

/** The processes of one sandbox that were started over HTTP, as far as this server has heard of them. */
export class SandboxProcesses {
  /** Oldest first. */
  readonly #known = new Map<SandboxProcess, ManagedProcess>();

  get all(): readonly ManagedProcess[] {
    return [...this.#known.values()];
  }

  get running(): boolean {
    return this.all.some((process) => process.running);
  }

  /** Whether one runs whose user would notice that the sandbox is gone. */
  get attended(): boolean {
    return this.all.some((process) => process.running && !process.traits.detached);
  }

  /** Resolves when none runs. Never rejects. */
  async quiet(): Promise<void> {
    while (this.running) {
      const running = this.all.filter((process) => process.running);
      await Promise.allSettled(running.map(({ exited }) => exited));
      // The exit of one whose sandbox has ended never comes.
      if (running.every((process) => process.running)) return;
    }
  }

  find(id: string): ManagedProcess | undefined {
    return this.all.find((process) => process.id === id);
  }

  /** Learns what the sandbox has: those that are new here are taken on, those that are gone are forgotten. */
  sync(present: readonly SandboxProcess[], hooksOf: (traits: ProcessTraits) => ProcessHooks): void {
    const still = new Set(present);
    for (const process of this.#known.keys()) if (!still.has(process)) this.#known.delete(process);
    for (const process of present) this.take(process, hooksOf);
  }

  /** Undefined for a process that was started otherwise. */
  take(process: SandboxProcess, hooksOf: (traits: ProcessTraits) => ProcessHooks): ManagedProcess | undefined {
    const known = this.#known.get(process);
    if (known !== undefined) return known;
    const traits = parseProcessKey(process.key);
    if (traits === undefined) return undefined;
    const managed = new ManagedProcess(process, traits, hooksOf(traits));
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

  /** Those that have to go so that what is remembered stays within its bounds, oldest first. */
  surplus(): ManagedProcess[] {
    const droppable = this.all.filter((process) => process.droppable);
    let bytes = droppable.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
    return droppable.filter((process, index) => {
      const over = droppable.length - index > MAX_ENDED || bytes > MAX_ENDED_BYTES;
      if (over) bytes -= process.keptBytes;
      return over;
    });
  }
}
