import type { Expression, Value } from "../programs/instruction.ts";
import { binary, display, isTruthy, ProgramError, toNumber } from "../programs/values.ts";
import { fromBytes, fromText, toText } from "./byte-string.ts";
import { FileFault } from "./file-fault.ts";
import type { Interior } from "./interior.ts";
import type { MachineProcess } from "./machine-process.ts";

/** The value of an expression now. Expressions never block and change nothing. */
export function evaluate(expression: Expression, process: MachineProcess, machine: Interior): Value {
  const { record } = process;
  const { language } = record.program;
  const value = (inner: Expression): Value => evaluate(inner, process, machine);
  switch (expression.kind) {
    case "literal":
      return expression.value;
    case "variable":
      return variable(expression.name, process);
    case "environment":
      return record.environment[expression.name] ?? null;
    case "join":
      return expression.parts.map((part) => display(value(part), language)).join("");
    case "binary":
      return binary(expression.operator, value(expression.left), value(expression.right), language);
    case "unary":
      return unary(expression.verb, value(expression.operand), process);
    case "fileContent":
      return fromBytes(machine.files.read(pathOf(expression.path, process, machine)));
    case "fileIs":
      return fileIs(expression.what, pathOf(expression.path, process, machine), machine);
    case "system":
      return system(expression.what, process);
  }
}

/** An expression as text for output. */
export function textOf(expression: Expression, process: MachineProcess, machine: Interior): string {
  return display(evaluate(expression, process, machine), process.record.program.language);
}

/** An expression as an absolute path; `""` is empty and the files refuse it. */
export function pathOf(expression: Expression, process: MachineProcess, machine: Interior): string {
  const path = toText(textOf(expression, process, machine));
  if (path === "") throw new FileFault("ENOENT");
  return path.startsWith("/") ? path : `${process.record.workingFolder}/${path}`;
}

function variable(name: string, process: MachineProcess): Value {
  const { variables, program } = process.record;
  const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
  if (value !== undefined) return value;
  if (program.language === "bash") return process.record.environment[name] ?? "";
  if (program.language === "python") throw new ProgramError(`NameError: name '${name}' is not defined`);
  throw new ProgramError(`ReferenceError: ${name} is not defined`);
}

function unary(verb: "not" | "integer" | "text" | "length" | "trim", operand: Value, process: MachineProcess): Value {
  if (verb === "not") return !isTruthy(operand);
  if (verb === "integer") return Math.trunc(toNumber(operand));
  const text = display(operand, process.record.program.language);
  if (verb === "trim") return text.trim();
  return verb === "text" ? text : toText(text).length;
}

function fileIs(what: "any" | "file" | "folder", path: string, machine: Interior): boolean {
  try {
    const { kind } = machine.files.stat(path);
    return what === "any" || kind === what;
  } catch (thrown) {
    if (thrown instanceof FileFault) return false;
    throw thrown;
  }
}

function system(what: "pid" | "status" | "workingFolder" | "backgroundPid", { record }: MachineProcess): Value {
  if (what === "workingFolder") return fromText(record.workingFolder);
  // `$$` in a subshell of bash is the shell's own pid.
  if (what === "pid") return record.program.language === "bash" ? record.leaderPid : record.pid;
  return record[what];
}
