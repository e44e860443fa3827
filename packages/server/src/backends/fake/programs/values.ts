import type { BinaryOperator, Language, Value } from "./instruction.ts";

/** An uncaught error: printed as in its language, exit code 1. */
export class ProgramError extends Error {}

/** A value as the language prints it. */
export function display(value: Value, language: Language): string {
  if (language === "python" && typeof value === "boolean") return value ? "True" : "False";
  if (language === "python" && value === null) return "None";
  return value === null ? "undefined" : String(value);
}

export function isTruthy(value: Value): boolean {
  return value !== false && value !== null && value !== 0 && value !== "";
}

export function toNumber(value: Value): number {
  if (typeof value === "number") return value;
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : Number(value ?? 0);
  if (Number.isNaN(number)) throw new ProgramError(`ValueError: not a number: '${String(value)}'`);
  return number;
}

export function binary(operator: BinaryOperator, left: Value, right: Value, language: Language): Value {
  switch (operator) {
    case "and":
      return isTruthy(left) ? right : left;
    case "or":
      return isTruthy(left) ? left : right;
    case "==":
      return left === right;
    case "!=":
      return left !== right;
    case "+":
      if (typeof left === "number" && typeof right === "number") return left + right;
      if (typeof left === "string" && typeof right === "string") return left + right;
      if (language === "node") return display(left, language) + display(right, language);
      throw new ProgramError("TypeError: unsupported operand type(s) for +");
    case "*":
      if (typeof left === "string" && typeof right === "number") return left.repeat(Math.max(0, right));
      return toNumber(left) * toNumber(right);
    case "<":
    case "<=":
    case ">":
    case ">=":
      return compare(operator, left ?? 0, right ?? 0);
    default:
      return arithmetic(operator, toNumber(left), toNumber(right));
  }
}

function compare(
  operator: "<" | "<=" | ">" | ">=",
  left: string | number | boolean,
  right: string | number | boolean,
): boolean {
  if (operator === "<") return left < right;
  if (operator === "<=") return left <= right;
  return operator === ">" ? left > right : left >= right;
}

function arithmetic(operator: "-" | "//" | "/" | "%", left: number, right: number): number {
  if (operator === "-") return left - right;
  if (right === 0) throw new ProgramError("ZeroDivisionError: division by zero");
  if (operator === "%") return left % right;
  return operator === "/" ? left / right : Math.floor(left / right);
}
