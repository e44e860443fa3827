import type { BinaryOperator, Value } from "../instruction.ts";
import { lex } from "./lexer.ts";
import { TokenReader } from "./token.ts";

/** A parsed expression of Python or JavaScript without the meaning of its names. */
export type Syntax =
  | { readonly type: "literal"; readonly value: Value }
  | { readonly type: "name"; readonly name: string }
  | { readonly type: "template"; readonly parts: readonly Syntax[] }
  | { readonly type: "member"; readonly object: Syntax; readonly name: string }
  | {
      readonly type: "call";
      readonly callee: Syntax;
      readonly positional: readonly Syntax[];
      readonly named: Readonly<Record<string, Syntax>>;
    }
  | { readonly type: "binary"; readonly operator: BinaryOperator; readonly left: Syntax; readonly right: Syntax }
  | { readonly type: "not"; readonly operand: Syntax };

const LEVELS: readonly Readonly<Record<string, BinaryOperator>>[] = [
  { or: "or", "||": "or" },
  { and: "and", "&&": "and" },
  { "==": "==", "===": "==", "!=": "!=", "!==": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=" },
  { "+": "+", "-": "-" },
  { "*": "*", "//": "//", "/": "/", "%": "%" },
];
const CONSTANTS: Readonly<Record<"python" | "node", Readonly<Record<string, Value>>>> = {
  python: { True: true, False: false, None: null },
  node: { true: true, false: false, null: null, undefined: null },
};

export function parseExpression(reader: TokenReader, language: "python" | "node", level = 0): Syntax {
  const operators = LEVELS[level];
  if (operators === undefined) return parseUnary(reader, language);
  let left = parseExpression(reader, language, level + 1);
  for (;;) {
    const token = reader.peek();
    const operator = token.type === "symbol" || token.type === "name" ? operators[token.text] : undefined;
    if (operator === undefined) return left;
    reader.take();
    left = { type: "binary", operator, left, right: parseExpression(reader, language, level + 1) };
  }
}

function parseUnary(reader: TokenReader, language: "python" | "node"): Syntax {
  if (reader.accept("not") || reader.accept("!")) return { type: "not", operand: parseExpression(reader, language, 2) };
  if (reader.accept("-")) {
    return { type: "binary", operator: "-", left: { type: "literal", value: 0 }, right: parseUnary(reader, language) };
  }
  let syntax = parsePrimary(reader, language);
  for (;;) {
    if (reader.accept(".")) syntax = { type: "member", object: syntax, name: reader.name() };
    else if (reader.accept("(")) syntax = parseCall(syntax, reader, language);
    else return syntax;
  }
}

function parseCall(callee: Syntax, reader: TokenReader, language: "python" | "node"): Syntax {
  const positional: Syntax[] = [];
  const named: Record<string, Syntax> = {};
  while (!reader.accept(")")) {
    if (reader.peek().type === "name" && reader.peek(1).text === "=") {
      const name = reader.name();
      reader.expect("=");
      named[name] = parseExpression(reader, language);
    } else {
      positional.push(parseExpression(reader, language));
    }
    if (reader.peek().text !== ")") reader.expect(",");
  }
  return { type: "call", callee, positional, named };
}

function parsePrimary(reader: TokenReader, language: "python" | "node"): Syntax {
  const token = reader.take();
  if (token.type === "literal") return { type: "literal", value: token.value ?? null };
  if (token.type === "template") {
    const parts = (token.parts ?? []).map(({ text, code }): Syntax =>
      code === undefined
        ? { type: "literal", value: text ?? "" }
        : parseExpression(new TokenReader(lex(code, language)), language),
    );
    return { type: "template", parts };
  }
  if (token.type === "name") {
    const constants = CONSTANTS[language];
    if (Object.hasOwn(constants, token.text)) return { type: "literal", value: constants[token.text] ?? null };
    return { type: "name", name: token.text };
  }
  if (token.text === "(") {
    const inner = parseExpression(reader, language);
    reader.expect(")");
    return inner;
  }
  throw new SyntaxError(`invalid syntax at '${token.text}'`);
}

/** A callee as words: `open().read`, `process.stdout.write`. */
export function calleePath(syntax: Syntax): string {
  if (syntax.type === "name") return syntax.name;
  if (syntax.type === "member") return `${calleePath(syntax.object)}.${syntax.name}`;
  if (syntax.type === "call") return `${calleePath(syntax.callee)}()`;
  return "?";
}
