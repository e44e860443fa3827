import type { Expression } from "../instruction.ts";
import { parseExpression, type Syntax } from "../syntax/expression-parser.ts";
import { lex } from "../syntax/lexer.ts";
import { TokenReader } from "../syntax/token.ts";

/** `$(( … ))`: whole numbers, names with and without `$`. */
export function parseArithmetic(code: string): Expression {
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
