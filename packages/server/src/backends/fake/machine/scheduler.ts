import { executeInstruction } from "./execute.ts";
import type { Interior } from "./interior.ts";
import type { MachineProcess } from "./machine-process.ts";

/** Instructions that a process runs before the others get their turn. */
const TURN = 200;

/** Runs the processes of a machine in turns, on the event loop, and keeps its time. */
export class Scheduler {
  readonly #machine: Interior;
  readonly #ready = new Set<MachineProcess>();
  readonly #timers = new Map<MachineProcess, AbortController>();
  readonly #waitingToRun = new Set<{ resolve: () => void; reject: (reason: Error) => void }>();
  #paused = false;
  #stopped = false;
  #turn: NodeJS.Immediate | undefined;
  #uptimeMs: number;
  #runningSinceMs: number;

  constructor(machine: Interior, uptimeMs: number) {
    this.#machine = machine;
    this.#uptimeMs = uptimeMs;
    this.#runningSinceMs = machine.clock.monotonicMs();
  }

  get paused(): boolean {
    return this.#paused;
  }

  get uptimeMs(): number {
    return this.#uptimeMs + (this.#paused ? 0 : this.#machine.clock.monotonicMs() - this.#runningSinceMs);
  }

  wake(process: MachineProcess): void {
    if (this.#stopped || !process.running) return;
    this.#ready.add(process);
    if (!this.#paused) this.#turn ??= setImmediate(() => this.#runTurn());
  }

  wakeAll(): void {
    for (const process of this.#machine.living) this.wake(process);
  }

  /** Wakes the process when the machine's time has come to `atMs`. */
  wakeAt(process: MachineProcess, atMs: number): void {
    this.#timers.get(process)?.abort();
    const timer = new AbortController();
    this.#timers.set(process, timer);
    this.#machine.clock.sleep(Math.max(0, atMs - this.uptimeMs), timer.signal).then(
      () => this.wake(process),
      () => undefined,
    );
  }

  pause(): void {
    if (this.#paused) return;
    this.#uptimeMs = this.uptimeMs;
    this.#paused = true;
    this.#cancelTimers();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#runningSinceMs = this.#machine.clock.monotonicMs();
    this.wakeAll();
    for (const { resolve } of this.#waitingToRun) resolve();
    this.#waitingToRun.clear();
    for (const process of this.#machine.processes.values()) process.log.notify();
  }

  /** Settles when the machine is not paused; fails when it has ended. */
  async running(): Promise<void> {
    if (this.#machine.end !== undefined) throw this.#machine.failure();
    if (this.#paused) await new Promise<void>((resolve, reject) => this.#waitingToRun.add({ resolve, reject }));
  }

  forget(process: MachineProcess): void {
    this.#ready.delete(process);
    this.#timers.get(process)?.abort();
    this.#timers.delete(process);
  }

  stop(): void {
    this.#stopped = true;
    clearImmediate(this.#turn);
    this.#cancelTimers();
    for (const { reject } of this.#waitingToRun) reject(this.#machine.failure());
    this.#waitingToRun.clear();
  }

  #cancelTimers(): void {
    for (const timer of this.#timers.values()) timer.abort();
    this.#timers.clear();
  }

  #runTurn(): void {
    this.#turn = undefined;
    if (this.#paused || this.#stopped) return;
    const processes = [...this.#ready];
    this.#ready.clear();
    for (const process of processes) {
      for (let count = 0; process.running && !process.record.stopped; count++) {
        if (count === TURN) this.wake(process);
        if (count === TURN || executeInstruction(process, this.#machine) === "blocked") break;
      }
    }
  }
}
