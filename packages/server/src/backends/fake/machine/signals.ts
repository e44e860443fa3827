import type { Interior } from "./interior.ts";
import type { MachineProcess } from "./machine-process.ts";

const SIGCONT = 18;
const STOPPING = new Set([19, 20, 21, 22]);
/** SIGCHLD, SIGURG, SIGWINCH and the test for existence. */
const WITHOUT_EFFECT = new Set([0, 17, 23, 28]);

/** The default action of the signal: no program here catches any. */
export function deliver(signal: number, process: MachineProcess, machine: Interior): void {
  if (!process.running || WITHOUT_EFFECT.has(signal)) return;
  if (STOPPING.has(signal)) {
    process.record.stopped = true;
  } else if (signal === SIGCONT) {
    process.record.stopped = false;
    machine.scheduler.wake(process);
  } else {
    machine.finish(process, { signal });
  }
}

/** Sends it to the process that `exec` started and to all its descendants. */
export function deliverToGroup(signal: number, leader: MachineProcess, machine: Interior): void {
  const members = machine.living.filter((process) => process.record.leaderPid === leader.pid);
  for (const member of members) deliver(signal, member, machine);
}
