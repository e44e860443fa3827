import type { Interior } from "./interior.ts";
import type { MachineProcess } from "./machine-process.ts";
import { deliverToGroup } from "./signals.ts";

const INTERRUPT = "\x03";
const END_OF_FILE = "\x04";

/** A terminal's effect on output: every line end becomes CR LF. */
export const cooked = (bytes: string): string => bytes.replaceAll("\n", "\r\n");

/** A terminal's effect on input: echoes it, makes CR a line end, ^C a signal and ^D the end. */
export function typeInto(bytes: string, process: MachineProcess, machine: Interior): string {
  let kept = "";
  for (const character of bytes.replaceAll("\r", "\n")) {
    if (character === INTERRUPT) deliverToGroup(2, process, machine);
    else if (character === END_OF_FILE) process.stdin.close();
    else kept += character;
  }
  process.log.append("stdout", Buffer.from(cooked(kept), "latin1"));
  return kept;
}
