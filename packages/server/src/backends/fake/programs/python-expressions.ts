import { type Expression, literal, STDOUT } from "./instruction.ts";
import type { ProgramBuilder } from "./program-builder.ts";
import { calleePath, type Syntax } from "./syntax/expression-parser.ts";

/**
 * Gives an expression of Python its meaning. What blocks (`input()`) becomes an instruction before the statement, since
 * expressions themselves never wait.
 */
export function lowerPython(syntax: Syntax, builder: ProgramBuilder): Expression {
  const lower = (inner: Syntax): Expression => lowerPython(inner, builder);
  switch (syntax.type) {
    case "literal":
      return literal(syntax.value);
    case "name":
      return { kind: "variable", name: syntax.name };
    case "template":
      return { kind: "join", parts: syntax.parts.map(lower) };
    case "binary":
      return { kind: "binary", operator: syntax.operator, left: lower(syntax.left), right: lower(syntax.right) };
    case "not":
      return { kind: "unary", verb: "not", operand: lower(syntax.operand) };
    case "index":
      if (calleePath(syntax.object) === "os.environ" && syntax.key.type === "literal") {
        return { kind: "environment", name: String(syntax.key.value) };
      }
      break;
    case "call":
      return lowerCall(syntax, builder);
    default:
  }
  throw new SyntaxError(`not supported: ${calleePath(syntax)}`);
}

function lowerCall(call: Extract<Syntax, { type: "call" }>, builder: ProgramBuilder): Expression {
  const path = calleePath(call.callee);
  const operands = call.positional.map((argument) => lowerPython(argument, builder));
  const first = operands[0] ?? literal("");
  const into = builder.slot();
  const result: Expression = { kind: "variable", name: into };
  switch (path) {
    case "str":
      return { kind: "unary", verb: "text", operand: first };
    case "int":
      return { kind: "unary", verb: "integer", operand: first };
    case "len":
      return { kind: "unary", verb: "length", operand: first };
    case "os.getpid":
      return { kind: "system", what: "pid" };
    case "os.getcwd":
      return { kind: "system", what: "workingFolder" };
    case "os.environ.get":
      return { kind: "environment", name: first.kind === "literal" ? String(first.value) : "" };
    case "time.time":
      return { kind: "binary", operator: "/", left: { kind: "system", what: "timeMs" }, right: literal(1000) };
    case "input":
      if (operands.length > 0) builder.emit({ op: "write", to: STDOUT, value: first });
      builder.emit({ op: "readLine", into, atEnd: "raise" });
      return result;
    case "sys.stdin.readline":
      builder.emit({ op: "readLine", into, atEnd: "empty" });
      return result;
    case "sys.stdin.read":
      builder.emit({ op: "readAll", into });
      return result;
    case "open().read": {
      const open = call.callee.type === "member" ? call.callee.object : undefined;
      const name = open?.type === "call" ? open.positional[0] : undefined;
      if (name !== undefined) return { kind: "fileContent", path: lowerPython(name, builder) };
      break;
    }
    default:
  }
  throw new SyntaxError(`not supported: ${path}()`);
}
