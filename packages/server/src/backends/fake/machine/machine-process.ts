import type { ProcessExit } from "../../backend.ts";
import type { Program, Value } from "../programs/instruction.ts";
import { OutputLog, type OutputLogState } from "../../output/output-log.ts";
import { StdinPipe, type StdinState } from "./stdin-pipe.ts";

export type LoopState =
  | { readonly kind: "range"; next: number; readonly to: number; readonly step: number }
  | { readonly kind: "values"; next: number; readonly values: readonly Value[] };

/** The progress of the current instruction; empty between instructions. */
export interface InstructionProgress {
  wakeAtMs?: number;
  pending?: string;
  writtenBytes?: number;
}

/** Everything about a process that a snapshot needs besides its pipes; plain JSON. */
export interface ProcessRecord {
  readonly pid: number;
  parentPid: number;
  /** The process started by `exec` that this one belongs to; for that one, itself. */
  readonly leaderPid: number;
  /** Absent for children of programs. */
  readonly key?: string;
  readonly command: string;
  readonly program: Program;
  counter: number;
  readonly variables: Record<string, Value>;
  readonly loops: Record<string, LoopState>;
  readonly environment: Record<string, string>;
  workingFolder: string;
  status: number;
  backgroundPid: number;
  instructionsRun: number;
  stopped: boolean;
  terminal?: { rows: number; columns: number };
  progress: InstructionProgress;
  exit?: ProcessExit;
}

export interface ProcessState {
  readonly record: ProcessRecord;
  readonly stdin: StdinState;
  readonly log: OutputLogState;
}

/** A process of the machine: its record, its pipes, and the waiters for its end. */
export class MachineProcess {
  readonly record: ProcessRecord;
  readonly stdin: StdinPipe;
  readonly log: OutputLog;
  readonly exited = Promise.withResolvers<ProcessExit>();

  constructor(record: ProcessRecord, stdin = new StdinPipe(), log = new OutputLog()) {
    this.record = record;
    this.stdin = stdin;
    this.log = log;
    // Nobody has to wait for the end of a process.
    this.exited.promise.catch(() => undefined);
    if (record.exit !== undefined) this.exited.resolve(record.exit);
  }

  get pid(): number {
    return this.record.pid;
  }
  get running(): boolean {
    return this.record.exit === undefined;
  }

  capture(): ProcessState {
    return structuredClone({ record: this.record, stdin: this.stdin.capture(), log: this.log.capture() });
  }

  static restore(state: ProcessState): MachineProcess {
    const { exit } = state.record;
    // JSON has no undefined, so every field of an exit is present.
    if (exit !== undefined) state.record.exit = { code: exit.code, signal: exit.signal, outputEnd: exit.outputEnd };
    return new MachineProcess(state.record, new StdinPipe(state.stdin), OutputLog.restore(state.log));
  }
}
