import { type CallSyntax, line, lower, unsupported } from "./expressions.ts";
import { type Expression, literal, type Program, STDERR, STDOUT } from "./instruction.ts";
import { ProgramBuilder } from "./program-builder.ts";
import { calleePath, parseExpression, type Syntax } from "./syntax/expression-parser.ts";
import { lex } from "./syntax/lexer.ts";
import { TokenReader } from "./syntax/token.ts";

/** Compiles JavaScript (as bytes). Throws a SyntaxError for unsupported code. */
export function compileNode(code: string): Program {
  const builder = new ProgramBuilder();
  const reader = new TokenReader(lex(code, "node"));
  while (reader.peek().type !== "end") {
    if (reader.accept(";") || reader.accept("newline")) continue;
    compileStatement(reader, builder);
    const { type, text } = reader.peek();
    if (type !== "end" && type !== "newline" && text !== ";") throw new SyntaxError(`Unexpected token '${text}'`);
  }
  return builder.finish("node");
}

function compileStatement(reader: TokenReader, builder: ProgramBuilder): void {
  if (reader.accept("const") || reader.accept("let") || reader.accept("var")) {
    const name = reader.name();
    reader.expect("=");
    builder.emit({ op: "assign", name, value: compileExpression(reader) });
  } else if (reader.peek().text === "require") {
    compileServer(reader, builder);
  } else {
    const syntax = parseExpression(reader, "node");
    if (syntax.type === "call") compileCall(syntax, builder);
    else if (syntax.type !== "literal") throw unsupported(syntax);
  }
}

function compileCall(call: CallSyntax, builder: ProgramBuilder): void {
  const values = call.positional.map(lowerNode);
  const value = values[0] ?? literal("");
  switch (calleePath(call.callee)) {
    case "console.log":
      return builder.emit({ op: "write", to: STDOUT, value: line(values) });
    case "console.error":
      return builder.emit({ op: "write", to: STDERR, value: line(values) });
    case "process.stdout.write":
      return builder.emit({ op: "write", to: STDOUT, value });
    case "process.stderr.write":
      return builder.emit({ op: "write", to: STDERR, value });
    case "process.exit":
      return builder.emit({ op: "exit", code: values[0] ?? literal(0) });
    default:
      throw unsupported(call);
  }
}

/** `require("net").createServer((c) => c.pipe(c)).listen(PORT, HOST, () => …)`: an echo, the one server there is. */
function compileServer(reader: TokenReader, builder: ProgramBuilder): void {
  while (!reader.accept("listen")) {
    if (reader.take().type === "end") throw new SyntaxError("not supported: require() without listen()");
  }
  reader.expect("(");
  const [listening, announced] = [builder.label(), builder.label()];
  builder.place(listening);
  builder.emit({ op: "listen", port: compileExpression(reader), announced });
  builder.place(announced);
  while (reader.accept(",")) {
    if (reader.accept("(")) {
      reader.expect(")");
      reader.expect("=>");
      compileStatement(reader, builder);
    } else compileExpression(reader);
  }
  reader.expect(")");
  builder.emit({ op: "jump", to: listening });
}

function compileExpression(reader: TokenReader): Expression {
  return lowerNode(parseExpression(reader, "node"));
}

function lowerNode(syntax: Syntax): Expression {
  return lower(syntax, (call) => {
    throw unsupported(call);
  });
}
