import { type Expression, literal } from "../instruction.ts";
import { parseExpression, type Syntax } from "../syntax/expression-parser.ts";
import { lex } from "../syntax/lexer.ts";
import { TokenReader } from "../syntax/token.ts";

/** A word of bash. `bare` is its text when nothing in it was quoted or expanded: keywords and operators are bare. */
export interface Word {
  readonly expression: Expression;
  readonly bare: string | undefined;
  /** `$(seq A B)` or `{A..B}`: the numbers that a `for` goes through. */
  readonly range?: { readonly from: Expression; readonly to: Expression };
}

/** Reads the word at `at`; the code is bytes. */
export function readWord(code: string, at: number): { word: Word; length: number } {
  const parts: Expression[] = [];
  let range: Word["range"];
  let bare: string | undefined = "";
  let position = at;
  while (position < code.length && !/[\s;&|()<>]/.test(code[position] ?? "")) {
    const character = code[position] ?? "";
    if (character === "'") {
      const end = closing(code, position + 1, "'");
      parts.push(literal(code.slice(position + 1, end)));
      [bare, position] = [undefined, end + 1];
    } else if (character === '"') {
      const end = readDoubleQuoted(code, position + 1, parts);
      [bare, position] = [undefined, end + 1];
    } else if (character === "$") {
      const expansion = readExpansion(code, position);
      range = expansion.range ?? range;
      parts.push(expansion.expression);
      [bare, position] = [undefined, position + expansion.length];
    } else {
      const escaped = character === "\\";
      const text = escaped ? (code[position + 1] ?? "") : character;
      parts.push(literal(text));
      bare = bare === undefined || escaped ? undefined : bare + text;
      position += escaped ? 2 : 1;
    }
  }
  const braces = /^\{(\d+)\.\.(\d+)\}$/.exec(bare ?? "");
  if (braces !== null) range = { from: literal(Number(braces[1])), to: literal(Number(braces[2])) };
  const word: Word = { expression: { kind: "join", parts }, bare, ...(range === undefined ? {} : { range }) };
  return { word, length: position - at };
}

function readDoubleQuoted(code: string, from: number, parts: Expression[]): number {
  let position = from;
  parts.push(literal(""));
  while (code[position] !== '"') {
    if (position >= code.length) throw new SyntaxError("unexpected EOF while looking for matching `\"'");
    if (code[position] === "$") {
      const expansion = readExpansion(code, position);
      parts.push(expansion.expression);
      position += expansion.length;
    } else if (code[position] === "\\" && /["\\$`]/.test(code[position + 1] ?? "")) {
      parts.push(literal(code[position + 1] ?? ""));
      position += 2;
    } else {
      parts.push(literal(code[position] ?? ""));
      position += 1;
    }
  }
  return position;
}

interface Expansion {
  readonly expression: Expression;
  readonly length: number;
  readonly range?: Word["range"];
}

const SPECIAL = { $: "pid", "?": "status", "!": "backgroundPid" } as const;

function readExpansion(code: string, at: number): Expansion {
  const rest = code.slice(at);
  const special = /^\$([$?!])/.exec(rest)?.[1] as keyof typeof SPECIAL | undefined;
  if (special !== undefined) return { expression: { kind: "system", what: SPECIAL[special] }, length: 2 };
  const name = /^\$(?:\{(\w+)\}|([A-Za-z_]\w*))/.exec(rest);
  if (name !== null)
    return { expression: { kind: "variable", name: name[1] ?? name[2] ?? "" }, length: name[0].length };
  if (rest.startsWith("$((")) {
    const end = closing(rest, 3, "))");
    return { expression: parseArithmetic(rest.slice(3, end)), length: end + 2 };
  }
  if (rest.startsWith("$(")) {
    const end = closing(rest, 2, ")");
    return { ...substitution(rest.slice(2, end).trim()), length: end + 1 };
  }
  return { expression: literal("$"), length: 1 };
}

/** The commands that are allowed inside `$( )`: they need no process. */
function substitution(command: string): { expression: Expression; range?: Word["range"] } {
  if (command === "pwd") return { expression: { kind: "system", what: "workingFolder" } };
  const [name, ...texts] = command.split(/\s+/);
  const [first, second] = texts.map((text) => readWord(text, 0).word.expression);
  if (name === "cat" && first !== undefined && second === undefined) {
    return { expression: { kind: "unary", verb: "trim", operand: { kind: "fileContent", path: first } } };
  }
  if (name === "seq" && first !== undefined && texts.length <= 2) {
    const range = { from: second === undefined ? literal(1) : first, to: second ?? first };
    return { expression: literal(""), range };
  }
  throw new SyntaxError(`not supported: $(${command})`);
}

function closing(code: string, from: number, mark: string): number {
  const end = code.indexOf(mark, from);
  if (end === -1) throw new SyntaxError(`unexpected EOF while looking for matching \`${mark}'`);
  return end;
}

/** `$(( … ))`: whole numbers, names with and without `$`. */
function parseArithmetic(code: string): Expression {
  return lower(parseExpression(new TokenReader(lex(code.replaceAll("$", ""), "node")), "node"));
}

function lower(syntax: Syntax): Expression {
  if (syntax.type === "literal") return { kind: "literal", value: syntax.value };
  if (syntax.type === "name") {
    return { kind: "unary", verb: "integer", operand: { kind: "variable", name: syntax.name } };
  }
  if (syntax.type === "binary") {
    const binary: Expression = {
      kind: "binary",
      operator: syntax.operator === "/" ? "//" : syntax.operator,
      left: lower(syntax.left),
      right: lower(syntax.right),
    };
    return /^[-+*/%]/.test(syntax.operator) ? binary : { kind: "unary", verb: "integer", operand: binary };
  }
  throw new SyntaxError("arithmetic syntax error");
}
