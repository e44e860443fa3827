import { posix } from "node:path";
import { type Instruction, STDERR, type LoopSource, type Value } from "../programs/instruction.ts";
import { isTruthy, ProgramError, toNumber } from "../programs/values.ts";
import { fromText } from "./byte-string.ts";
import { evaluate, pathOf, textOf } from "./evaluate.ts";
import { executeFileInstruction } from "./execute-files.ts";
import { executeInputOutput } from "./execute-input-output.ts";
import { FileFault } from "./file-fault.ts";
import type { Interior, Outcome } from "./interior.ts";
import type { MachineProcess } from "./machine-process.ts";
import { deliver } from "./signals.ts";
import { writeOutput } from "./write-output.ts";

/** Executes the current instruction of a process. */
export function executeInstruction(process: MachineProcess, machine: Interior): "done" | "blocked" {
  const { record } = process;
  const instruction = record.program.instructions[record.counter];
  if (instruction === undefined) {
    machine.finish(process, { code: record.program.language === "bash" ? record.status : 0 });
    return "done";
  }
  record.instructionsRun += 1;
  const outcome = attempt(instruction, process, machine);
  if (outcome === "blocked") return "blocked";
  record.progress = {};
  record.counter = outcome === "done" ? record.counter + 1 : outcome;
  return "done";
}

/** In bash a failed file operation is a status; in the other languages it ends the program, like every other error. */
function attempt(instruction: Instruction, process: MachineProcess, machine: Interior): Outcome {
  const { language } = process.record.program;
  try {
    return execute(instruction, process, machine);
  } catch (thrown) {
    if (!(thrown instanceof FileFault || thrown instanceof ProgramError)) throw thrown;
    const shell = language === "bash";
    const prefix = shell ? "bash: " : language === "python" ? "Traceback (most recent call last):\n" : "Uncaught ";
    const name = thrown instanceof FileFault && language === "python" ? "OSError: " : "";
    writeOutput(instruction.errors ?? STDERR, `${prefix}${name}${fromText(thrown.message)}\n`, process, machine);
    if (!shell) machine.finish(process, { code: 1 });
    process.record.status = 1;
    return "orElse" in instruction ? instruction.orElse : "done";
  }
}

function execute(instruction: Instruction, process: MachineProcess, machine: Interior): Outcome {
  const { record } = process;
  switch (instruction.op) {
    case "assign": {
      const value = evaluate(instruction.value, process, machine);
      record.variables[instruction.name] = value;
      if (instruction.exported === true) record.environment[instruction.name] = String(value);
      record.status = 0;
      return "done";
    }
    case "sleep": {
      const { progress } = record;
      progress.wakeAtMs ??=
        machine.scheduler.uptimeMs + toNumber(evaluate(instruction.seconds, process, machine)) * 1000;
      return waitUntil(progress.wakeAtMs, process, machine);
    }
    case "exit": {
      const code =
        instruction.code === undefined ? record.status : toNumber(evaluate(instruction.code, process, machine));
      machine.finish(process, { code: code & 0xff });
      return "done";
    }
    case "fail":
      writeOutput(instruction.errors ?? STDERR, textOf(instruction.message, process, machine), process, machine);
      machine.finish(process, { code: instruction.code });
      return "done";
    case "report":
      writeOutput(instruction.errors ?? STDERR, textOf(instruction.message, process, machine), process, machine);
      record.status = instruction.status;
      return "done";
    case "status":
      record.status = isTruthy(evaluate(instruction.from, process, machine)) ? 0 : 1;
      return "done";
    case "jump":
      return instruction.to;
    case "jumpUnless":
      return isTruthy(evaluate(instruction.condition, process, machine)) ? "done" : instruction.to;
    case "jumpOnStatus":
      return (record.status === 0) === instruction.success ? instruction.to : "done";
    case "loopStart":
      startLoop(instruction.slot, instruction.source, process, machine);
      return "done";
    case "loopNext": {
      const value = nextLoopValue(instruction.slot, process);
      if (value === undefined) return instruction.to;
      record.variables[instruction.variable] = value;
      return "done";
    }
    case "fork":
      return fork(instruction.to, process, machine);
    case "wait":
      record.status = 0;
      return machine.living.some((child) => child.record.parentPid === process.pid) ? "blocked" : "done";
    case "kill": {
      const target = machine.processes.get(toNumber(evaluate(instruction.pid, process, machine)));
      record.status = target?.running === true ? 0 : 1;
      if (target !== undefined) deliver(instruction.signal, target, machine);
      return "done";
    }
    case "changeFolder": {
      const path = pathOf(instruction.path, process, machine);
      if (machine.files.stat(path).kind !== "folder") throw new FileFault("ENOTDIR");
      record.workingFolder = posix.normalize(path).replace(/(?<=.)\/$/, "");
      record.status = 0;
      return "done";
    }
    case "file":
    case "list":
    case "open":
      return executeFileInstruction(instruction, process, machine);
    default:
      return executeInputOutput(instruction, process, machine);
  }
}

function waitUntil(atMs: number, process: MachineProcess, machine: Interior): Outcome {
  process.record.status = 0;
  if (machine.scheduler.uptimeMs >= atMs) return "done";
  machine.scheduler.wakeAt(process, atMs);
  return "blocked";
}

function fork(to: number, process: MachineProcess, machine: Interior): Outcome {
  const child = machine.fork(process);
  if (child === undefined) {
    writeOutput(STDERR, "bash: fork: Resource temporarily unavailable\n", process, machine);
    process.record.status = 254;
    return to;
  }
  child.record.counter += 1;
  process.record.backgroundPid = child.pid;
  process.record.status = 0;
  return to;
}

/** Loops are stored by the name of their slot, so that a loop continues after a restore. */
function startLoop(slot: string, source: LoopSource, process: MachineProcess, machine: Interior): void {
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

function nextLoopValue(slot: string, process: MachineProcess): Value | undefined {
  const loop = process.record.loops[slot];
  if (loop === undefined) return undefined;
  if (loop.kind === "values") return loop.values[loop.next++];
  if (loop.step > 0 ? loop.next >= loop.to : loop.next <= loop.to) return undefined;
  const value = loop.next;
  loop.next += loop.step;
  return process.record.program.language === "bash" ? String(value) : value;
}
