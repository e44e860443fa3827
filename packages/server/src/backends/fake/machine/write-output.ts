import type { Target } from "../programs/instruction.ts";
import { toBytes } from "./byte-string.ts";
import { pathOf } from "./evaluate.ts";
import type { Interior } from "./interior.ts";
import type { MachineProcess } from "./machine-process.ts";
import { cooked } from "./terminal.ts";

/** Writes as much of `bytes` as fits and returns the rest. */
export function writeOutput(to: Target, bytes: string, process: MachineProcess, machine: Interior): string {
  if ("path" in to) {
    const path = pathOf(to.path, process, machine);
    if (path !== "/dev/null") machine.files.write(path, toBytes(bytes), { append: true });
    return "";
  }
  const leader = machine.processes.get(process.record.leaderPid);
  // Output after the leader's exit has no log; its writers continue.
  if (leader === undefined || !leader.running) return "";
  return bytes.slice(leader.log.append(streamOf(to.stream, leader), toBytes(bytes)));
}

/** Output as it goes into the log: a terminal changes its line ends. */
export function prepared(to: Target, bytes: string, process: MachineProcess): string {
  return "stream" in to && process.record.terminal !== undefined ? cooked(bytes) : bytes;
}

function streamOf(stream: "stdout" | "stderr", leader: MachineProcess): "stdout" | "stderr" {
  return leader.record.terminal === undefined ? stream : "stdout";
}
