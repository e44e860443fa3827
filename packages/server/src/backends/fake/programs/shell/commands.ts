import { type Expression, type FileVerb, literal, type Target, type BinaryOperator } from "../instruction.ts";
import type { Word } from "./word.ts";
import type { ProgramBuilder } from "../program-builder.ts";

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

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "\\": "\\", '"': '"', "'": "'" };

/** The input and output of a command. */
export interface Outputs {
  readonly stdout: Target;
  readonly stderr: Target;
  readonly stdin?: Expression;
}

interface CommandContext extends Outputs {
  readonly builder: ProgramBuilder;
  readonly words: readonly Word[];
}

type Compile = (context: CommandContext, parameters: readonly Word[]) => void;

const SIGNALS: Readonly<Record<string, number>> = {
  HUP: 1,
  INT: 2,
  QUIT: 3,
  KILL: 9,
  USR1: 10,
  USR2: 12,
  TERM: 15,
  CONT: 18,
  STOP: 19,
};

const COMMANDS: Readonly<Record<string, Compile>> = {
  ":": (context) => succeed(context, true),
  true: (context) => succeed(context, true),
  false: (context) => succeed(context, false),
  echo: ({ builder, stdout }, parameters) => {
    const silent = parameters[0]?.bare === "-n";
    const words = separated((silent ? parameters.slice(1) : parameters).map((word) => word.expression));
    builder.emit({
      op: "write",
      to: stdout,
      value: { kind: "join", parts: silent ? words : [...words, literal("\n")] },
    });
  },
  printf: (context, parameters) => compilePrintf(context, parameters),
  sleep: ({ builder }, [seconds]) => builder.emit({ op: "sleep", seconds: seconds?.expression ?? literal(0) }),
  exit: ({ builder }, [code]) => builder.emit({ op: "exit", ...(code === undefined ? {} : { code: code.expression }) }),
  read: ({ builder }, parameters) => {
    const name = parameters.find((word) => word.bare !== "-r")?.bare ?? "REPLY";
    builder.emit({ op: "readLine", into: name, atEnd: "status" });
  },
  cat: ({ builder, stdout, stdin }, parameters) => {
    const files = parameters
      .map((word) => word.expression)
      .concat(parameters.length === 0 && stdin !== undefined ? [stdin] : []);
    for (const path of files) builder.emit({ op: "copyFile", to: stdout, path });
    if (files.length === 0) builder.emit({ op: "copyStdin", to: stdout });
  },
  pwd: ({ builder, stdout }) =>
    builder.emit({
      op: "write",
      to: stdout,
      value: { kind: "join", parts: [{ kind: "system", what: "workingFolder" }, literal("\n")] },
    }),
  cd: ({ builder }, [folder]) =>
    builder.emit({ op: "changeFolder", path: folder?.expression ?? literal("/workspace") }),
  export: (context, parameters) => parameters.forEach((word) => assign(context, word, true)),
  printenv: ({ builder, stdout }, [name]) => {
    const value: Expression = { kind: "environment", name: name?.bare ?? "" };
    builder.emit({ op: "write", to: stdout, value: { kind: "join", parts: [value, literal("\n")] } });
  },
  kill: ({ builder }, parameters) => {
    const option = parameters.length > 1 ? (parameters[0]?.bare ?? "-TERM").slice(1) : "TERM";
    const signal = SIGNALS[option.replace(/^SIG/, "")] ?? Number(option);
    builder.emit({ op: "kill", signal, pid: parameters.at(-1)?.expression ?? literal(0) });
  },
  wait: ({ builder }) => builder.emit({ op: "wait" }),
  yes: ({ builder, stdout }, [line]) =>
    builder.emit({
      op: "repeat",
      to: stdout,
      unit: { kind: "join", parts: [line?.expression ?? literal("y"), literal("\n")] },
    }),
  head: ({ builder, stdout }, parameters) => {
    const bounds = head(parameters.slice(0, 2));
    if (bounds?.bytes === undefined || parameters[2]?.bare !== "/dev/zero")
      throw new SyntaxError("not supported: head of this");
    builder.emit({ op: "repeat", to: stdout, unit: literal("\0"), bytes: bounds.bytes });
  },
  mkdir: files("mkdir"),
  rm: files("rm"),
  ln: files("ln"),
  mv: files("mv"),
  touch: files("touch"),
  ls: ({ builder, stdout }, [folder]) =>
    builder.emit({ op: "list", to: stdout, path: folder?.expression ?? literal(".") }),
  stty: ({ builder, stdout }) => builder.emit({ op: "terminalSize", to: stdout }),
  test: compileTest,
  "[": (context, parameters) => compileTest(context, parameters.slice(0, -1)),
  break: ({ builder }) => builder.leaveLoop("break"),
  continue: ({ builder }) => builder.leaveLoop("continue"),
};

/** Emits a command; false if there is none of that name. */
export function compileCommand(context: CommandContext): boolean {
  const [first, ...parameters] = context.words;
  const compile = first?.bare !== undefined && Object.hasOwn(COMMANDS, first.bare) ? COMMANDS[first.bare] : undefined;
  if (compile !== undefined) compile(context, parameters);
  else if (first !== undefined && parameters.length === 0 && assignedName(first) !== undefined)
    assign(context, first, false);
  else return false;
  return true;
}

/** The bounds of `head -n N` and `head -c N`. */
export function head([option, count]: readonly Word[]): { units?: Expression; bytes?: Expression } | undefined {
  if (count === undefined) return undefined;
  if (option?.bare === "-n") return { units: count.expression };
  return option?.bare === "-c" ? { bytes: count.expression } : undefined;
}

function files(verb: FileVerb): Compile {
  return ({ builder }, parameters) => {
    const paths = parameters.filter((word) => word.bare?.startsWith("-") !== true).map((word) => word.expression);
    builder.emit({ op: "file", verb, force: paths.length < parameters.length, paths });
  };
}

function succeed({ builder }: CommandContext, success: boolean): void {
  builder.emit({ op: "status", from: literal(success) });
}

function separated(expressions: readonly Expression[]): Expression[] {
  return expressions.flatMap((expression, index) => (index === 0 ? [expression] : [literal(" "), expression]));
}

/** The text of a word before its first quote or expansion. */
function leadingText(word: Word): string {
  if (word.expression.kind !== "join") return word.bare ?? "";
  const dynamic = word.expression.parts.findIndex((part) => part.kind !== "literal");
  const parts = dynamic === -1 ? word.expression.parts : word.expression.parts.slice(0, dynamic);
  return parts.map((part) => (part.kind === "literal" ? String(part.value) : "")).join("");
}

function assignedName(word: Word): string | undefined {
  return /^([A-Za-z_]\w*)=/.exec(leadingText(word))?.[1];
}

function assign({ builder }: CommandContext, word: Word, exported: boolean): void {
  const name = assignedName(word);
  if (name === undefined) {
    if (exported && word.bare !== undefined)
      builder.emit({ op: "assign", name: word.bare, value: { kind: "variable", name: word.bare }, exported });
    return;
  }
  // The parts before the value are single characters or the name's own; the value follows the equals sign.
  const parts = word.expression.kind === "join" ? word.expression.parts : [word.expression];
  let skip = name.length + 1;
  const value = parts.flatMap((part): Expression[] => {
    if (part.kind !== "literal" || skip === 0) return [part];
    const text = String(part.value);
    const kept = text.slice(skip);
    skip = Math.max(0, skip - text.length);
    return [literal(kept)];
  });
  builder.emit({ op: "assign", name, value: { kind: "join", parts: value }, exported });
}

/** `printf FORMAT …` with %s, %d, %%, \n, \t, \r, \xHH and \NNN; the format is used once. */
function compilePrintf({ builder, stdout }: CommandContext, [format, ...values]: readonly Word[]): void {
  const parts: Expression[] = [];
  const left = values.map((word) => word.expression);
  for (const [piece] of formatText(format).matchAll(/%[sd%]|\\x[0-9a-fA-F]{1,2}|\\[0-7]{1,3}|\\.|[^%\\]+|[%\\]/gs)) {
    if (piece === "%s" || piece === "%d") parts.push(left.shift() ?? literal(piece === "%d" ? "0" : ""));
    else parts.push(literal(unescape(piece)));
  }
  builder.emit({ op: "write", to: stdout, value: { kind: "join", parts } });
}

function unescape(piece: string): string {
  if (piece === "%%") return "%";
  if (piece.startsWith("\\x")) return String.fromCharCode(Number.parseInt(piece.slice(2), 16));
  if (/^\\[0-7]/.test(piece)) return String.fromCharCode(Number.parseInt(piece.slice(1), 8) & 0xff);
  return piece.startsWith("\\") ? (ESCAPES[piece.slice(1)] ?? piece) : piece;
}

/** The format must be a literal. */
function formatText(word: Word | undefined): string {
  const parts = word?.expression.kind === "join" ? word.expression.parts : word === undefined ? [] : [word.expression];
  return parts
    .map((part) => {
      if (part.kind !== "literal") throw new SyntaxError("not supported: printf with a format that is not literal");
      return String(part.value);
    })
    .join("");
}

/** `[ A = B ]`, `[ A -lt B ]`, `[ -f PATH ]`, `[ -n TEXT ]`, `[ -z TEXT ]`. */
function compileTest({ builder }: CommandContext, parameters: readonly Word[]): void {
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
