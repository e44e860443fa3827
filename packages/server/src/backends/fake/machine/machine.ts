import { SandboxerError } from "@sandboxer/protocol";
import { sandboxEnded } from "../../sandbox-ended.ts";
import type { ProcessExit, Resources, SandboxEnd } from "../../backend.ts";
import type { Clock } from "../../../support/clock.ts";
import type { Program } from "../programs/instruction.ts";
import { FileTree } from "./file-tree.ts";
import { Listeners } from "./listeners.ts";
import { MachineProcess, type ProcessRecord, type ProcessState } from "./machine-process.ts";
import { Scheduler } from "./scheduler.ts";
import type { NodeState } from "./file-node.ts";

/** As many as the agent keeps. */
const MAXIMUM_RECORDS = 256;

export interface StartRequest {
  readonly key: string;
  readonly argv: readonly string[];
  readonly program: Program;
  readonly environment: Readonly<Record<string, string>>;
  readonly workingFolder: string;
  readonly terminal?: { readonly rows: number; readonly columns: number };
}

/** The inside of one fake sandbox: files, processes and a clock that stops while it is paused. */
export class Machine {
  readonly clock: Clock;
  readonly files: FileTree;
  readonly processes = new Map<number, MachineProcess>();
  readonly listeners = new Listeners();
  readonly scheduler: Scheduler;
  readonly #resources: Resources;
  /** Stopped, not destroyed: its files can be used again. */
  kept = false;
  readonly #ended = Promise.withResolvers<SandboxEnd>();
  #end: SandboxEnd | undefined;
  #nextPid = 2;

  constructor(clock: Clock, resources: Resources, state?: MachineState) {
    this.clock = clock;
    this.#resources = resources;
    this.files = new FileTree(resources, () => clock.wallMs(), state?.files);
    this.scheduler = new Scheduler(this, state?.uptimeMs ?? 0);
    this.#nextPid = state?.nextPid ?? 2;
    for (const saved of state?.processes ?? []) {
      const process = MachineProcess.restore(saved);
      this.processes.set(process.pid, process);
    }
    this.scheduler.wakeAll();
  }

  get ended(): Promise<SandboxEnd> {
    return this.#ended.promise;
  }
  get end(): SandboxEnd | undefined {
    return this.#end;
  }
  get living(): MachineProcess[] {
    return [...this.processes.values()].filter((process) => process.running);
  }
  get started(): MachineProcess[] {
    return [...this.processes.values()].filter((process) => process.record.key !== undefined);
  }

  start(request: StartRequest): MachineProcess {
    const pid = this.#takePid();
    if (pid === undefined) throw new SandboxerError("limit_reached", "The sandbox's limit of processes is reached.");
    this.#forgetOldest();
    const { terminal } = request;
    const record: ProcessRecord = {
      pid,
      parentPid: 1,
      leaderPid: pid,
      key: request.key,
      command: request.argv.join(" "),
      program: request.program,
      counter: 0,
      variables: {},
      loops: {},
      environment: { ...request.environment },
      workingFolder: request.workingFolder,
      status: 0,
      backgroundPid: 0,
      instructionsRun: 0,
      stopped: false,
      ...(terminal === undefined ? {} : { terminal: { ...terminal } }),
      progress: {},
    };
    return this.#add(new MachineProcess(record));
  }

  /** A copy of the process at its current instruction, without stdin; undefined if the limit is reached. */
  fork(parent: MachineProcess): MachineProcess | undefined {
    const pid = this.#takePid();
    if (pid === undefined) return undefined;
    const { key: _key, ...copy } = structuredClone(parent.record);
    const child = new MachineProcess({ ...copy, pid, parentPid: parent.pid, progress: {} });
    child.stdin.close();
    return this.#add(child);
  }

  /** Ends a process; its children continue, and their output is dropped. */
  finish(process: MachineProcess, end: { code?: number; signal?: number }): void {
    if (!process.running) return;
    process.log.finish();
    const exit: ProcessExit = { code: end.code, signal: end.signal, outputEnd: process.log.end };
    process.record.exit = exit;
    process.exited.resolve(exit);
    process.stdin.notify();
    this.listeners.closeAllOf(process.pid);
    this.scheduler.forget(process);
    if (process.record.key === undefined) this.processes.delete(process.pid);
    for (const child of this.living) if (child.record.parentPid === process.pid) child.record.parentPid = 1;
    const parent = this.processes.get(process.record.parentPid);
    if (parent !== undefined) this.scheduler.wake(parent);
  }

  /** The sandbox has ended: every process and every waiting call fails. */
  finishAll(end: SandboxEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.scheduler.stop();
    for (const process of this.processes.values()) {
      process.exited.reject(this.failure());
      process.log.notify();
      process.stdin.notify();
    }
    this.listeners.closeAll();
    this.files.endAllWatches();
    this.#ended.resolve(end);
  }

  failure(): SandboxerError {
    return sandboxEnded(this.#end ?? { reason: "crashed", message: "unknown" });
  }

  capture(): MachineState {
    return {
      files: this.files.capture(),
      processes: [...this.processes.values()].map((process) => process.capture()),
      uptimeMs: this.scheduler.uptimeMs,
      nextPid: this.#nextPid,
    };
  }

  #add(process: MachineProcess): MachineProcess {
    this.processes.set(process.pid, process);
    this.scheduler.wake(process);
    return process;
  }

  #takePid(): number | undefined {
    return this.living.length >= (this.#resources.processes ?? Infinity) ? undefined : this.#nextPid++;
  }

  #forgetOldest(): void {
    const records = this.started;
    if (records.length < MAXIMUM_RECORDS) return;
    const oldest = records.find((process) => !process.running && process.log.acknowledged === process.log.end);
    if (oldest === undefined) throw new SandboxerError("limit_reached", `${MAXIMUM_RECORDS} processes are kept.`);
    this.processes.delete(oldest.pid);
  }
}

/** A machine as JSON. Times count from its start and stop while it is paused or stored. */
export interface MachineState {
  readonly files: NodeState;
  readonly processes: readonly ProcessState[];
  readonly uptimeMs: number;
  readonly nextPid: number;
}
