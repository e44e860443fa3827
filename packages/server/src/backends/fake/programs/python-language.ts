import { type Expression, literal, type Program, STDERR, STDOUT, type Target } from "./instruction.ts";
import { ProgramBuilder } from "./program-builder.ts";
import { lowerPython } from "./python-expressions.ts";
import { calleePath, parseExpression, type Syntax } from "./syntax/expression-parser.ts";
import { lex } from "./syntax/lexer.ts";
import { TokenReader } from "./syntax/token.ts";

/** Compiles Python (as bytes). Throws a SyntaxError for what the subset does not have. */
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
    if (over.type === "list") {
      builder.emit({
        op: "loopStart",
        slot,
        source: { kind: "values", values: over.items.map((item) => this.#lower(item)) },
      });
    } else if (over.type === "call" && calleePath(over.callee) === "range") {
      const [first, second, third] = over.positional.map((bound) => this.#lower(bound));
      const from = second === undefined ? literal(0) : (first ?? literal(0));
      const to = second ?? first ?? literal(0);
      builder.emit({ op: "loopStart", slot, source: { kind: "range", from, to, step: third ?? literal(1) } });
    } else throw new SyntaxError("not supported: for over anything but range(…) and a list");
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
    if (reader.peek().type === "name" && ["=", "+=", "-=", "*="].includes(next)) return this.#assign();
    const syntax = parseExpression(reader, "python");
    if (syntax.type === "call") this.#call(syntax);
    else this.#evaluate(this.#lower(syntax));
  }

  #assign(): void {
    const name = this.#reader.name();
    const sign = this.#reader.take().text;
    const right = this.#expression();
    const left: Expression = { kind: "variable", name };
    const operator = sign === "+=" ? "+" : sign === "-=" ? "-" : "*";
    const value: Expression = sign === "=" ? right : { kind: "binary", operator, left, right };
    this.#builder.emit({ op: "assign", name, value });
  }

  #call(call: Extract<Syntax, { type: "call" }>): void {
    const builder = this.#builder;
    const path = calleePath(call.callee);
    const [first, second] = path === "print" ? [] : call.positional.map((argument) => this.#lower(argument));
    if (path === "print") this.#print(call);
    else if (path === "time.sleep") builder.emit({ op: "sleep", seconds: first ?? literal(0) });
    else if (path === "sys.exit" || path === "exit" || path === "os._exit")
      builder.emit({ op: "exit", code: first ?? literal(0) });
    else if (path === "sys.stdout.write") builder.emit({ op: "write", to: STDOUT, value: first ?? literal("") });
    else if (path === "sys.stderr.write") builder.emit({ op: "write", to: STDERR, value: first ?? literal("") });
    else if (path === "sys.stdout.flush" || path === "sys.stderr.flush") return;
    else if (path === "os.kill") builder.emit({ op: "kill", pid: first ?? literal(0), signal: signalNumber(second) });
    else if (path === "open().write") this.#writeFile(call, first ?? literal(""));
    else this.#evaluate(this.#lower(call));
  }

  /** For what it does, or the error that it is. */
  #evaluate(value: Expression): void {
    this.#builder.emit({ op: "assign", name: this.#builder.slot(), value });
  }

  #print(call: Extract<Syntax, { type: "call" }>): void {
    const { end, sep, file } = call.named;
    const separator = sep === undefined ? literal(" ") : this.#lower(sep);
    const values = call.positional.map((value) => this.#lower(value));
    const spaced = values.flatMap((value, index) => (index === 0 ? [value] : [separator, value]));
    const parts = [...spaced, end === undefined ? literal("\n") : this.#lower(end)];
    const to: Target = file !== undefined && calleePath(file) === "sys.stderr" ? STDERR : STDOUT;
    this.#builder.emit({ op: "write", to, value: { kind: "join", parts } });
  }

  #writeFile(call: Extract<Syntax, { type: "call" }>, value: Expression): void {
    const open = call.callee.type === "member" ? call.callee.object : undefined;
    if (open?.type !== "call") throw new SyntaxError("invalid syntax");
    const [path, mode] = open.positional.map((argument) => this.#lower(argument));
    const append = mode?.kind === "literal" && String(mode.value).startsWith("a");
    const after = this.#builder.label();
    this.#builder.emit({ op: "open", path: path ?? literal(""), append, orElse: after });
    this.#builder.emit({ op: "write", to: { path: path ?? literal("") }, value });
    this.#builder.place(after);
  }

  #raise(syntax: Syntax): void {
    const name = syntax.type === "call" ? calleePath(syntax.callee) : calleePath(syntax);
    const message = syntax.type === "call" ? syntax.positional[0] : undefined;
    if (name === "SystemExit")
      return this.#builder.emit({ op: "exit", code: message === undefined ? literal(0) : this.#lower(message) });
    const head = literal(`Traceback (most recent call last):\n  File "<string>", in <module>\n${name}`);
    const parts = message === undefined ? [head] : [head, literal(": "), this.#lower(message)];
    this.#builder.emit({ op: "fail", message: { kind: "join", parts: [...parts, literal("\n")] }, code: 1 });
  }

  #expression(): Expression {
    return this.#lower(parseExpression(this.#reader, "python"));
  }

  #lower(syntax: Syntax): Expression {
    return lowerPython(syntax, this.#builder);
  }
}

function signalNumber(expression: Expression | undefined): number {
  return expression?.kind === "literal" ? Number(expression.value) : 15;
}
