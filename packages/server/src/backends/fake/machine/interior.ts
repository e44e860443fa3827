import type { SandboxerError } from "@sandboxer/protocol";
import type { SandboxEnd } from "../../backend.ts";
import type { Clock } from "../../../support/clock.ts";
import type { FileTree } from "./file-tree.ts";
import type { Listeners } from "./listeners.ts";
import type { MachineProcess } from "./machine-process.ts";

/** The part of the machine that instructions use; see {@link Machine}. */
export interface Interior {
  readonly clock: Clock;
  readonly files: FileTree;
  readonly processes: ReadonlyMap<number, MachineProcess>;
  readonly living: readonly MachineProcess[];
  readonly listeners: Listeners;
  readonly scheduler: {
    readonly uptimeMs: number;
    wake(process: MachineProcess): void;
    wakeAt(process: MachineProcess, atMs: number): void;
  };
  readonly end: SandboxEnd | undefined;
  failure(): SandboxerError;
  fork(parent: MachineProcess): MachineProcess | undefined;
  finish(process: MachineProcess, end: { code?: number; signal?: number }): void;
}

/** `blocked`: the instruction waits, and is executed again when the process is woken. A number: where to continue. */
export type Outcome = "done" | "blocked" | number;
