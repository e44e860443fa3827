import type { BinaryOperator, Expression } from "../instruction.ts";
import type { CommandContext } from "./command-context.ts";
import type { Word } from "./word.ts";

const COMPARISONS: Readonly<Record<string, BinaryOperator>> = {
  "=": "==",
  "==": "==",
  "!=": "!=",
  "-eq": "==",
  "-ne": "!=",
  "-lt": "<",
  "-le": "<=",
  "-gt": ">",
  "-ge": ">=",
};
const FILES = { "-e": "any", "-f": "file", "-d": "folder" } as const;

/** `[ A = B ]`, `[ A -lt B ]`, `[ -f PATH ]`, `[ -n TEXT ]`, `[ -z TEXT ]`. */
export function compileTest({ builder }: CommandContext, parameters: readonly Word[]): void {
  builder.emit({ op: "status", from: condition(parameters) });
}

function condition(parameters: readonly Word[]): Expression {
  const [first, second, third] = parameters;
  if (first !== undefined && second !== undefined && third !== undefined && parameters.length === 3) {
    const operator = COMPARISONS[second.bare ?? ""];
    if (operator === undefined) throw new SyntaxError(`not supported: [ … ${second.bare ?? ""} … ]`);
    const numeric = second.bare?.startsWith("-") === true;
    const side = (word: Word): Expression =>
      numeric ? { kind: "unary", verb: "integer", operand: word.expression } : word.expression;
    return { kind: "binary", operator, left: side(first), right: side(third) };
  }
  if (first?.bare !== undefined && second !== undefined) {
    if (first.bare === "-n") return second.expression;
    if (first.bare === "-z") return { kind: "unary", verb: "not", operand: second.expression };
    const what = FILES[first.bare as keyof typeof FILES] as "any" | "file" | "folder" | undefined;
    if (what !== undefined) return { kind: "fileIs", what, path: second.expression };
  }
  throw new SyntaxError("not supported: this test");
}
