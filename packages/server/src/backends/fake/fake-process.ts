import { SandboxerError } from "@sandboxer/protocol";
import type { OutputBounds, OutputChunk, ProcessExit, SandboxProcess } from "../backend.ts";
import { fromBytes } from "./machine/byte-string.ts";
import type { Machine } from "./machine/machine.ts";
import type { MachineProcess } from "./machine/machine-process.ts";
import { deliver, deliverToGroup } from "./machine/signals.ts";
import { typeInto } from "./machine/terminal.ts";

/** A process of a fake sandbox as its users see it. */
export class FakeProcess implements SandboxProcess {
  readonly key: string;
  readonly pid: number;
  readonly #process: MachineProcess;
  readonly #machine: Machine;
  #writing: Promise<void> = Promise.resolve();

  constructor(process: MachineProcess, machine: Machine) {
    this.#process = process;
    this.#machine = machine;
    this.key = process.record.key ?? "";
    this.pid = process.pid;
  }

  get acknowledged(): number {
    return this.#process.log.acknowledged;
  }
  get exited(): Promise<ProcessExit> {
    return this.#process.exited.promise;
  }
  get exit(): ProcessExit | undefined {
    return this.#process.record.exit;
  }

  output(options: { readonly from?: number; readonly signal?: AbortSignal } = {}): AsyncIterable<OutputChunk> {
    const { log } = this.#process;
    return log.follow(options, { mayRead: () => this.#mayRead() });
  }

  async bounds(): Promise<OutputBounds> {
    await this.#known();
    const { end, keptBytes } = this.#process.log;
    return { start: end - keptBytes, end };
  }

  acknowledge(offset: number): void {
    this.#process.log.acknowledge(offset);
    this.#machine.scheduler.wakeAll();
  }

  /** One write after the other, as to a pipe. */
  writeStdin(data: Uint8Array): Promise<void> {
    const written = this.#writing.then(() => this.#write(fromBytes(data)));
    this.#writing = written.catch(() => undefined);
    return written;
  }

  async closeStdin(): Promise<void> {
    await this.#writing;
    await this.#known();
    this.#process.stdin.close();
    this.#machine.scheduler.wake(this.#process);
  }

  async signal(signal: number, scope: "process" | "group"): Promise<void> {
    await this.#known();
    if (!Number.isInteger(signal) || signal < 0 || signal > 64) {
      throw new SandboxerError("bad_request", `There is no signal ${signal}.`);
    }
    if (scope === "group") deliverToGroup(signal, this.#process, this.#machine);
    else deliver(signal, this.#process, this.#machine);
  }

  async resize(rows: number, columns: number): Promise<void> {
    await this.#known();
    if (this.#process.record.terminal === undefined) {
      throw new SandboxerError("bad_request", `Process ${this.pid} has no terminal.`);
    }
    this.#process.record.terminal = { rows, columns };
  }

  async release(): Promise<void> {
    await this.#known();
    if (this.#process.running) throw new SandboxerError("wrong_state", `Process ${this.pid} is still running.`);
    this.#machine.processes.delete(this.pid);
  }

  async #write(bytes: string): Promise<void> {
    await this.#known();
    const { stdin } = this.#process;
    const typed = this.#process.running && this.#process.record.terminal !== undefined;
    let left = typed ? typeInto(bytes, this.#process, this.#machine) : bytes;
    // The input may have ended the process.
    if (typed && left === "") return this.#machine.scheduler.wake(this.#process);
    for (;;) {
      if (this.#machine.end !== undefined) throw this.#machine.failure();
      if (!this.#process.running) throw new SandboxerError("wrong_state", `Process ${this.pid} has exited.`);
      if (stdin.closed && left !== "")
        throw new SandboxerError("wrong_state", `The stdin of process ${this.pid} is closed.`);
      left = left.slice(stdin.write(left));
      this.#machine.scheduler.wake(this.#process);
      if (left === "") return;
      await stdin.changed();
    }
  }

  /** While the machine is paused nothing arrives, as from a frozen agent. */
  #mayRead(): boolean {
    if (this.#machine.end !== undefined) throw this.#machine.failure();
    return !this.#machine.scheduler.paused;
  }

  async #known(): Promise<void> {
    await this.#machine.scheduler.running();
    if (this.#machine.processes.get(this.pid) !== this.#process) {
      throw new SandboxerError("process_not_found", `Process ${this.pid} no longer exists.`);
    }
  }
}
