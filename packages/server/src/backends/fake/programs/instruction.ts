import type { OutputStream } from "../../output/output-log.ts";

/**
 * The common target of the front ends (bash, Python, JavaScript): a flat list of instructions with jumps, so that a
 * program in the middle of a loop or a sleep is a counter, some variables and the progress of one instruction: plain
 * JSON.
 */
export type Language = "bash" | "python" | "node";
export type Value = string | number | boolean | null;

export type BinaryOperator = "+" | "-" | "*" | "//" | "/" | "%" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "and" | "or";

export type Expression =
  | { readonly kind: "literal"; readonly value: Value }
  | { readonly kind: "variable"; readonly name: string }
  | { readonly kind: "environment"; readonly name: string }
  | { readonly kind: "join"; readonly parts: readonly Expression[] }
  | {
      readonly kind: "binary";
      readonly operator: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | {
      readonly kind: "unary";
      readonly verb: "not" | "integer" | "text" | "length" | "trim";
      readonly operand: Expression;
    }
  | { readonly kind: "fileContent"; readonly path: Expression }
  | { readonly kind: "fileIs"; readonly what: "any" | "file" | "folder"; readonly path: Expression }
  | { readonly kind: "system"; readonly what: "pid" | "status" | "workingFolder" | "backgroundPid" };

/** The target of output. `open` creates a file before; writing appends. */
export type Target = { readonly stream: OutputStream } | { readonly path: Expression };

export type LoopSource =
  | { readonly kind: "range"; readonly from: Expression; readonly to: Expression; readonly step: Expression }
  | { readonly kind: "values"; readonly values: readonly Expression[] };

/** Numbers in `to` are positions in the program; `errors` is the target of error messages, by default stderr. */
export type Instruction = Operation & { readonly errors?: Target };

export type Operation =
  | { readonly op: "assign"; readonly name: string; readonly value: Expression; readonly exported?: boolean }
  | { readonly op: "write"; readonly to: Target; readonly value: Expression }
  /** Repeats `unit`, up to this many units or bytes; without either forever. */
  | {
      readonly op: "repeat";
      readonly to: Target;
      readonly unit: Expression;
      readonly units?: Expression;
      readonly bytes?: Expression;
    }
  | { readonly op: "open"; readonly path: Expression; readonly append: boolean; readonly orElse: number }
  | { readonly op: "copyStdin"; readonly to: Target }
  | { readonly op: "copyFile"; readonly to: Target; readonly path: Expression }
  | { readonly op: "readLine"; readonly into: string; readonly atEnd: "status" | "raise" }
  | { readonly op: "sleep"; readonly seconds: Expression }
  | { readonly op: "exit"; readonly code?: Expression }
  | { readonly op: "fail"; readonly message: Expression; readonly code: number }
  | { readonly op: "report"; readonly message: Expression; readonly status: number }
  | { readonly op: "status"; readonly from: Expression }
  | { readonly op: "jump"; readonly to: number }
  | { readonly op: "jumpUnless"; readonly condition: Expression; readonly to: number }
  | { readonly op: "jumpOnStatus"; readonly success: boolean; readonly to: number }
  | { readonly op: "loopStart"; readonly slot: string; readonly source: LoopSource }
  | { readonly op: "loopNext"; readonly slot: string; readonly variable: string; readonly to: number }
  /** The child continues with the next instruction, the parent at `to`. */
  | { readonly op: "fork"; readonly to: number }
  | { readonly op: "wait" }
  | { readonly op: "kill"; readonly pid: Expression; readonly signal: number }
  | { readonly op: "changeFolder"; readonly path: Expression }
  | { readonly op: "file"; readonly verb: FileVerb; readonly force: boolean; readonly paths: readonly Expression[] }
  | { readonly op: "list"; readonly to: Target; readonly path: Expression }
  | { readonly op: "terminalSize"; readonly to: Target }
  | { readonly op: "listen"; readonly port: Expression; readonly announced: number };

export type FileVerb = "mkdir" | "rm" | "ln" | "mv" | "touch";

export interface Program {
  readonly language: Language;
  readonly instructions: readonly Instruction[];
}

export const literal = (value: Value): Expression => ({ kind: "literal", value });
export const STDOUT: Target = { stream: "stdout" };
export const STDERR: Target = { stream: "stderr" };
