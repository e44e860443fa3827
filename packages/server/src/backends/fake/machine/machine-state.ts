import type { NodeState } from "./file-node.ts";
import type { ProcessState } from "./machine-process.ts";

/** A machine as JSON. Times count from its start and stand still while it is paused or stored. */
export interface MachineState {
  readonly files: NodeState;
  readonly processes: readonly ProcessState[];
  readonly uptimeMs: number;
  readonly nextPid: number;
}
