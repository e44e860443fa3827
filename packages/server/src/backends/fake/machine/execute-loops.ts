import type { LoopSource, Value } from "../programs/instruction.ts";
import { toNumber } from "../programs/values.ts";
import { evaluate } from "./evaluate.ts";
import type { Interior } from "./interior.ts";
import type { MachineProcess } from "./machine-process.ts";

/** Loops are kept by the name of their slot, so that a loop goes on after a restore where it was. */
export function startLoop(slot: string, source: LoopSource, process: MachineProcess, machine: Interior): void {
  const { loops } = process.record;
  if (source.kind === "values") {
    loops[slot] = { kind: "values", next: 0, values: source.values.map((value) => evaluate(value, process, machine)) };
    return;
  }
  const [next, to, step] = [source.from, source.to, source.step].map((bound) =>
    toNumber(evaluate(bound, process, machine)),
  );
  loops[slot] = { kind: "range", next: next ?? 0, to: to ?? 0, step: step ?? 1 };
}

export function nextLoopValue(slot: string, process: MachineProcess): Value | undefined {
  const loop = process.record.loops[slot];
  if (loop === undefined) return undefined;
  if (loop.kind === "values") return loop.values[loop.next++];
  if (loop.step > 0 ? loop.next >= loop.to : loop.next <= loop.to) return undefined;
  const value = loop.next;
  loop.next += loop.step;
  return process.record.program.language === "bash" ? String(value) : value;
}
