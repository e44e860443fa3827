import type { Expression, Instruction, Target } from "../programs/instruction.ts";
import { ProgramError, toNumber } from "../programs/values.ts";
import { fromBytes } from "./byte-string.ts";
import { evaluate, pathOf, textOf } from "./evaluate.ts";
import type { Interior, Outcome } from "./interior.ts";
import type { MachineProcess } from "./machine-process.ts";
import { prepared, writeOutput } from "./write-output.ts";

type InputOutput = Extract<
  Instruction,
  { op: "write" | "repeat" | "copyStdin" | "copyFile" | "readLine" | "terminalSize" | "listen" }
>;

/** The maximum number of bytes in one step of bulk output. */
const BULK_BYTES = 64 << 10;

/** Succeeds by default; the previous status is visible to output (`echo $?`). */
export function executeInputOutput(instruction: InputOutput, process: MachineProcess, machine: Interior): Outcome {
  const outcome = execute(instruction, process, machine);
  if (outcome === "done" && instruction.op !== "readLine") process.record.status = 0;
  return outcome;
}

function execute(instruction: InputOutput, process: MachineProcess, machine: Interior): Outcome {
  const { record } = process;
  switch (instruction.op) {
    case "write":
      return writeAll(instruction.to, () => textOf(instruction.value, process, machine), process, machine);
    case "copyFile":
      return writeAll(
        instruction.to,
        () => fromBytes(machine.files.read(pathOf(instruction.path, process, machine))),
        process,
        machine,
      );
    case "terminalSize": {
      const { terminal } = record;
      const size = terminal === undefined ? "" : `${terminal.rows} ${terminal.columns}\n`;
      if (size === "") throw new ProgramError("stty: standard input: Inappropriate ioctl for device");
      return writeAll(instruction.to, () => size, process, machine);
    }
    case "repeat":
      return repeat(instruction, process, machine);
    case "copyStdin":
      return copyStdin(instruction.to, process, machine);
    case "readLine":
      return readLine(instruction, process);
    case "listen":
      return listen(instruction, process, machine);
  }
}

/** The bytes are created once; the unwritten rest is kept with the instruction. */
function writeAll(to: Target, make: () => string, process: MachineProcess, machine: Interior): Outcome {
  const { progress } = process.record;
  const bytes = progress.pending ?? prepared(to, make(), process);
  progress.pending = writeOutput(to, bytes, process, machine);
  return progress.pending === "" ? "done" : "blocked";
}

function repeat(
  instruction: Extract<InputOutput, { op: "repeat" }>,
  process: MachineProcess,
  machine: Interior,
): Outcome {
  const { progress } = process.record;
  const unit = prepared(instruction.to, textOf(instruction.unit, process, machine), process);
  const number = (bound: Expression): number => toNumber(evaluate(bound, process, machine));
  const units = instruction.units === undefined ? Infinity : number(instruction.units) * unit.length;
  const totalBytes = Math.min(units, instruction.bytes === undefined ? Infinity : number(instruction.bytes));
  const done = progress.writtenBytes ?? 0;
  const bytes = Math.min(BULK_BYTES, totalBytes - done);
  if (bytes <= 0 || unit === "") return "done";
  const phase = done % unit.length;
  const piece = unit.repeat(Math.ceil((phase + bytes) / unit.length)).slice(phase, phase + bytes);
  const left = writeOutput(instruction.to, piece, process, machine);
  progress.writtenBytes = done + bytes - left.length;
  if (left === "") machine.scheduler.wake(process);
  return "blocked";
}

function copyStdin(to: Target, process: MachineProcess, machine: Interior): Outcome {
  const { progress } = process.record;
  for (;;) {
    const bytes = progress.pending ?? "";
    progress.pending = bytes === "" ? prepared(to, process.stdin.takeAll(), process) : bytes;
    if (progress.pending === "") return process.stdin.atEnd ? "done" : "blocked";
    progress.pending = writeOutput(to, progress.pending, process, machine);
    if (progress.pending !== "") return "blocked";
  }
}

function readLine(instruction: Extract<InputOutput, { op: "readLine" }>, process: MachineProcess): Outcome {
  const { record, stdin } = process;
  const line = (record.progress.pending ?? "") + stdin.takeLine();
  if (!line.endsWith("\n") && !stdin.atEnd) {
    record.progress.pending = line;
    return "blocked";
  }
  if (line === "" && instruction.atEnd === "raise") throw new ProgramError("EOFError: EOF when reading a line");
  record.status = !line.endsWith("\n") && instruction.atEnd === "status" ? 1 : 0;
  record.variables[instruction.into] = line.replace(/\n$/, "");
  return "done";
}

/** Announces once, then listens until the end of the process; after a restore it listens again. */
function listen(
  instruction: Extract<InputOutput, { op: "listen" }>,
  process: MachineProcess,
  machine: Interior,
): Outcome {
  const port = toNumber(evaluate(instruction.port, process, machine));
  if (!machine.listeners.listen(port, process)) throw new ProgramError(`Error: listen EADDRINUSE: ${port}`);
  if (process.record.variables["%announced"] === true) return "blocked";
  process.record.variables["%announced"] = true;
  return instruction.announced;
}
