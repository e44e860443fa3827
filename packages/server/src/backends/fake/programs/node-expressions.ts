import { type Expression, literal } from "./instruction.ts";
import { calleePath, type Syntax } from "./syntax/expression-parser.ts";

/** Gives an expression of JavaScript its meaning. */
export function lowerNode(syntax: Syntax): Expression {
  switch (syntax.type) {
    case "literal":
      return literal(syntax.value);
    case "name":
      return { kind: "variable", name: syntax.name };
    case "template":
      return { kind: "join", parts: syntax.parts.map(lowerNode) };
    case "binary":
      return {
        kind: "binary",
        operator: syntax.operator,
        left: lowerNode(syntax.left),
        right: lowerNode(syntax.right),
      };
    case "not":
      return { kind: "unary", verb: "not", operand: lowerNode(syntax.operand) };
    case "member":
      return lowerMember(syntax);
    case "call":
      return lowerCall(syntax);
    default:
      throw new SyntaxError(`not supported: ${calleePath(syntax)}`);
  }
}

function lowerMember(member: Extract<Syntax, { type: "member" }>): Expression {
  const path = calleePath(member);
  if (path === "process.pid") return { kind: "system", what: "pid" };
  if (calleePath(member.object) === "process.env") return { kind: "environment", name: member.name };
  if (member.name === "length") return { kind: "unary", verb: "length", operand: lowerNode(member.object) };
  throw new SyntaxError(`not supported: ${path}`);
}

function lowerCall(call: Extract<Syntax, { type: "call" }>): Expression {
  const path = calleePath(call.callee).replace(/^require\(\)/, "fs");
  const [first] = call.positional.map(lowerNode);
  const operand = first ?? literal("");
  if (path === "process.cwd") return { kind: "system", what: "workingFolder" };
  if (path === "Date.now") return { kind: "system", what: "timeMs" };
  if (path === "String") return { kind: "unary", verb: "text", operand };
  if (path === "Number" || path === "parseInt") return { kind: "unary", verb: "integer", operand };
  if (path === "fs.readFileSync") return { kind: "fileContent", path: operand };
  // The module itself: its functions are known by name.
  if (path === "require") return operand;
  throw new SyntaxError(`not supported: ${path}()`);
}
