import { type CallSyntax, line, lower, unsupported } from "./expressions.ts";
import { type Expression, literal, type Program, STDERR, STDOUT } from "./instruction.ts";
import { ProgramBuilder } from "./program-builder.ts";
import { calleePath, parseExpression, type Syntax } from "./syntax/expression-parser.ts";
import { lex } from "./syntax/lexer.ts";
import { TokenReader } from "./syntax/token.ts";

/** Compiles Python (as bytes). Throws a SyntaxError for unsupported code. */
export function compilePython(code: string): Program {
  const builder = new ProgramBuilder();
  const compiler = new PythonCompiler(new TokenReader(lex(code, "python")), builder);
  compiler.statements("end");
  return builder.finish("python");
}

class PythonCompiler {
  readonly #reader: TokenReader;
  readonly #builder: ProgramBuilder;

  constructor(reader: TokenReader, builder: ProgramBuilder) {
    this.#reader = reader;
    this.#builder = builder;
  }

  statements(until: "end" | "dedent"): void {
    for (;;) {
      const { type } = this.#reader.peek();
      if (type === "end" && until === "dedent") throw new SyntaxError("unexpected end of input");
      if (type === until) {
        this.#reader.take();
        return;
      }
      if (type === "newline") this.#reader.take();
      else this.#statement();
    }
  }

  #statement(): void {
    const reader = this.#reader;
    if (reader.accept("for")) this.#for();
    else if (reader.accept("while")) this.#while();
    else if (reader.accept("if")) this.#if();
    else this.#simpleLine();
  }

  #simpleLine(): void {
    do {
      if (this.#reader.peek().type === "newline") break;
      this.#simple();
    } while (this.#reader.accept(";"));
    if (this.#reader.take().type !== "newline") throw new SyntaxError("invalid syntax");
  }

  /** After a colon: the rest of the line, or an indented block. */
  #block(): void {
    this.#reader.expect(":");
    if (this.#reader.peek().type !== "newline") {
      this.#simpleLine();
      return;
    }
    this.#reader.take();
    if (this.#reader.take().type !== "indent") throw new SyntaxError("expected an indented block");
    this.statements("dedent");
  }

  #for(): void {
    const builder = this.#builder;
    const variable = this.#reader.name();
    this.#reader.expect("in");
    const over = parseExpression(this.#reader, "python");
    const [slot, again, after] = [builder.slot(), builder.label(), builder.label()];
    if (over.type !== "call" || calleePath(over.callee) !== "range")
      throw new SyntaxError("not supported: for over anything but range(…)");
    const [first = literal(0), second, step = literal(1)] = over.positional.map((bound) => this.#lower(bound));
    const [from, to] = second === undefined ? [literal(0), first] : [first, second];
    builder.emit({ op: "loopStart", slot, source: { kind: "range", from, to, step } });
    builder.place(again);
    builder.emit({ op: "loopNext", slot, variable, to: after });
    builder.loop(again, after, () => this.#block());
    builder.emit({ op: "jump", to: again });
    builder.place(after);
  }

  #while(): void {
    const builder = this.#builder;
    const [again, after] = [builder.label(), builder.label()];
    builder.place(again);
    builder.emit({ op: "jumpUnless", condition: this.#expression(), to: after });
    builder.loop(again, after, () => this.#block());
    builder.emit({ op: "jump", to: again });
    builder.place(after);
  }

  #if(): void {
    const builder = this.#builder;
    const [otherwise, after] = [builder.label(), builder.label()];
    builder.emit({ op: "jumpUnless", condition: this.#expression(), to: otherwise });
    this.#block();
    builder.emit({ op: "jump", to: after });
    builder.place(otherwise);
    if (this.#reader.accept("elif")) this.#if();
    else if (this.#reader.accept("else")) this.#block();
    builder.place(after);
  }

  #simple(): void {
    const reader = this.#reader;
    const builder = this.#builder;
    if (reader.accept("pass")) return;
    if (reader.accept("break")) return builder.leaveLoop("break");
    if (reader.accept("continue")) return builder.leaveLoop("continue");
    if (reader.accept("import") || reader.accept("from")) {
      while (reader.peek().type === "name" || reader.peek().text === "," || reader.peek().text === ".") reader.take();
      return;
    }
    if (reader.accept("raise")) return this.#raise(parseExpression(reader, "python"));
    const next = reader.peek(1).text;
    if (reader.peek().type === "name" && ["=", "+=", "-="].includes(next)) return this.#assign();
    const syntax = parseExpression(reader, "python");
    if (syntax.type === "call") this.#call(syntax);
    else this.#evaluate(this.#lower(syntax));
  }

  #assign(): void {
    const name = this.#reader.name();
    const sign = this.#reader.take().text;
    const right = this.#expression();
    const left: Expression = { kind: "variable", name };
    const operator = sign === "+=" ? "+" : "-";
    const value: Expression = sign === "=" ? right : { kind: "binary", operator, left, right };
    this.#builder.emit({ op: "assign", name, value });
  }

  #call(call: CallSyntax): void {
    const builder = this.#builder;
    const path = calleePath(call.callee);
    if (path === "print") return this.#print(call);
    const [first] = call.positional.map((argument) => this.#lower(argument));
    if (path === "time.sleep") builder.emit({ op: "sleep", seconds: first ?? literal(0) });
    else if (path === "sys.exit") builder.emit({ op: "exit", code: first ?? literal(0) });
    else if (path === "sys.stdout.write") builder.emit({ op: "write", to: STDOUT, value: first ?? literal("") });
    else if (path === "sys.stderr.write") builder.emit({ op: "write", to: STDERR, value: first ?? literal("") });
    else if (path !== "sys.stdout.flush") this.#evaluate(this.#lowerCall(call));
  }

  /** A call for its effect, or the error of an unsupported one. */
  #evaluate(value: Expression): void {
    this.#builder.emit({ op: "assign", name: this.#builder.slot(), value });
  }

  #print(call: CallSyntax): void {
    const { end, sep, file } = call.named;
    const named = (syntax: Syntax | undefined): Expression | undefined => syntax && this.#lower(syntax);
    const values = call.positional.map((value) => this.#lower(value));
    const to = file !== undefined && calleePath(file) === "sys.stderr" ? STDERR : STDOUT;
    this.#builder.emit({ op: "write", to, value: line(values, named(sep), named(end)) });
  }

  #raise(syntax: Syntax): void {
    const name = syntax.type === "call" ? calleePath(syntax.callee) : calleePath(syntax);
    const message = syntax.type === "call" ? syntax.positional[0] : undefined;
    const head = literal(`Traceback (most recent call last):\n  File "<string>", in <module>\n${name}`);
    const parts = message === undefined ? [head] : [head, literal(": "), this.#lower(message)];
    this.#builder.emit({ op: "fail", message: { kind: "join", parts: [...parts, literal("\n")] }, code: 1 });
  }

  #expression(): Expression {
    return this.#lower(parseExpression(this.#reader, "python"));
  }

  #lower(syntax: Syntax): Expression {
    return lower(syntax, (call) => this.#lowerCall(call));
  }

  /** A blocking call (`input()`) becomes an instruction before the statement, because expressions never wait. */
  #lowerCall(call: CallSyntax): Expression {
    const [operand = literal("")] = call.positional.map((argument) => this.#lower(argument));
    switch (calleePath(call.callee)) {
      case "str":
        return { kind: "unary", verb: "text", operand };
      case "int":
        return { kind: "unary", verb: "integer", operand };
      case "len":
        return { kind: "unary", verb: "length", operand };
      case "input": {
        const into = this.#builder.slot();
        if (call.positional.length > 0) this.#builder.emit({ op: "write", to: STDOUT, value: operand });
        this.#builder.emit({ op: "readLine", into, atEnd: "raise" });
        return { kind: "variable", name: into };
      }
      default:
        throw unsupported(call);
    }
  }
}
