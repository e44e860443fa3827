import { type Expression, literal } from "./instruction.ts";
import { calleePath, type Syntax } from "./syntax/expression-parser.ts";

export type CallSyntax = Extract<Syntax, { type: "call" }>;

/** Gives an expression of Python or JavaScript its meaning; the language defines the calls. */
export function lower(syntax: Syntax, lowerCall: (call: CallSyntax) => Expression): Expression {
  const inner = (part: Syntax): Expression => lower(part, lowerCall);
  switch (syntax.type) {
    case "literal":
      return literal(syntax.value);
    case "name":
      return { kind: "variable", name: syntax.name };
    case "template":
      return { kind: "join", parts: syntax.parts.map(inner) };
    case "binary":
      return { kind: "binary", operator: syntax.operator, left: inner(syntax.left), right: inner(syntax.right) };
    case "not":
      return { kind: "unary", verb: "not", operand: inner(syntax.operand) };
    case "call":
      return lowerCall(syntax);
    case "member":
      throw unsupported(syntax);
  }
}

export function unsupported(syntax: Syntax): SyntaxError {
  return new SyntaxError(`not supported: ${calleePath(syntax)}`);
}

/** Values in one line, as both languages print them. */
export function line(values: readonly Expression[], separator = literal(" "), end = literal("\n")): Expression {
  const spaced = values.flatMap((value, index) => (index === 0 ? [value] : [separator, value]));
  return { kind: "join", parts: [...spaced, end] };
}
