import { type Expression, literal, type Program, STDERR, STDOUT, type Target } from "./instruction.ts";
import { lowerNode } from "./node-expressions.ts";
import { ProgramBuilder } from "./program-builder.ts";
import { calleePath, parseExpression, type Syntax } from "./syntax/expression-parser.ts";
import { lex } from "./syntax/lexer.ts";
import { TokenReader } from "./syntax/token.ts";

/** Compiles JavaScript (as bytes). Throws a SyntaxError for what the subset does not have. */
export function compileNode(code: string): Program {
  const builder = new ProgramBuilder();
  const timers = builder.label();
  const compiler = new NodeCompiler(new TokenReader(lex(code, "node")), builder, timers);
  compiler.statements("end");
  builder.place(timers);
  builder.emit({ op: "nextTimer" });
  return builder.finish("node");
}

class NodeCompiler {
  readonly #reader: TokenReader;
  readonly #builder: ProgramBuilder;
  /** Where the program waits for its next timer. */
  readonly #timers: number;

  constructor(reader: TokenReader, builder: ProgramBuilder, timers: number) {
    this.#reader = reader;
    this.#builder = builder;
    this.#timers = timers;
  }

  statements(until: "}" | "end"): void {
    while (until === "end" ? this.#reader.peek().type !== "end" : !this.#reader.accept("}")) {
      if (this.#reader.peek().type === "end") throw new SyntaxError("Unexpected end of input");
      this.#statement();
    }
  }

  #statement(): void {
    const reader = this.#reader;
    if (reader.accept(";") || reader.accept("newline")) return;
    if (reader.accept("for")) return this.#for();
    if (reader.accept("while")) return this.#while();
    if (reader.accept("if")) return this.#if();
    this.#simple();
    const next = reader.peek();
    if (next.type !== "end" && next.type !== "newline" && next.text !== ";" && next.text !== "}") {
      throw new SyntaxError(`Unexpected token '${next.text}'`);
    }
  }

  #block(): void {
    while (this.#reader.accept("newline"));
    if (this.#reader.accept("{")) this.statements("}");
    else this.#statement();
  }

  /** The step is compiled before the body and jumped over, so that `continue` has a place to go. */
  #for(): void {
    const [reader, builder] = [this.#reader, this.#builder];
    const [again, step, body, after] = [builder.label(), builder.label(), builder.label(), builder.label()];
    reader.expect("(");
    if (reader.peek().text !== ";") this.#simple();
    reader.expect(";");
    builder.place(again);
    if (reader.peek().text !== ";") builder.emit({ op: "jumpUnless", condition: this.#expression(), to: after });
    reader.expect(";");
    builder.emit({ op: "jump", to: body });
    builder.place(step);
    if (reader.peek().text !== ")") this.#simple();
    reader.expect(")");
    builder.emit({ op: "jump", to: again });
    builder.place(body);
    builder.loop(step, after, () => this.#block());
    builder.emit({ op: "jump", to: step });
    builder.place(after);
  }

  #while(): void {
    const builder = this.#builder;
    const [again, after] = [builder.label(), builder.label()];
    builder.place(again);
    this.#condition(after);
    builder.loop(again, after, () => this.#block());
    builder.emit({ op: "jump", to: again });
    builder.place(after);
  }

  #if(): void {
    const builder = this.#builder;
    const [otherwise, after] = [builder.label(), builder.label()];
    this.#condition(otherwise);
    this.#block();
    builder.emit({ op: "jump", to: after });
    builder.place(otherwise);
    if (this.#reader.accept("else")) this.#block();
    builder.place(after);
  }

  #condition(otherwise: number): void {
    this.#reader.expect("(");
    this.#builder.emit({ op: "jumpUnless", condition: this.#expression(), to: otherwise });
    this.#reader.expect(")");
  }

  #simple(): void {
    const [reader, builder] = [this.#reader, this.#builder];
    if (reader.accept("break")) return builder.leaveLoop("break");
    if (reader.accept("continue")) return builder.leaveLoop("continue");
    if (reader.accept("throw")) return this.#throw(parseExpression(reader, "node"));
    const declared = reader.accept("const") || reader.accept("let") || reader.accept("var");
    const sign = reader.peek(1).text;
    if (reader.peek().type === "name" && (declared || ["=", "+=", "-=", "++", "--"].includes(sign)))
      return this.#assign();
    if (reader.accept("setTimeout")) return this.#timer(false);
    if (reader.accept("setInterval")) return this.#timer(true);
    if (reader.peek().text === "require" && reader.peek(5).text === "createServer") return this.#listen();
    const syntax = parseExpression(reader, "node");
    if (syntax.type === "call") this.#call(syntax);
    else if (syntax.type !== "literal") throw new SyntaxError(`not supported: ${calleePath(syntax)}`);
  }

  #assign(): void {
    const name = this.#reader.name();
    const sign = this.#reader.take().text;
    const left: Expression = { kind: "variable", name };
    const right = sign === "++" || sign === "--" ? literal(1) : this.#expression();
    const value: Expression =
      sign === "=" ? right : { kind: "binary", operator: sign.startsWith("+") ? "+" : "-", left, right };
    this.#builder.emit({ op: "assign", name, value });
  }

  #call(call: Extract<Syntax, { type: "call" }>): void {
    const builder = this.#builder;
    const path = calleePath(call.callee).replace(/^require\(\)/, "fs");
    if (path === "process.stdin.pipe") return builder.emit({ op: "copyStdin", to: STDOUT });
    const operands = call.positional.map((argument) => lowerNode(argument));
    const [first, second] = operands;
    if (path === "console.log" || path === "console.error") {
      const parts = operands.flatMap((value, index) => (index === 0 ? [value] : [literal(" "), value]));
      const to: Target = path === "console.log" ? STDOUT : STDERR;
      builder.emit({ op: "write", to, value: { kind: "join", parts: [...parts, literal("\n")] } });
    } else if (path === "process.stdout.write") builder.emit({ op: "write", to: STDOUT, value: first ?? literal("") });
    else if (path === "process.stderr.write") builder.emit({ op: "write", to: STDERR, value: first ?? literal("") });
    else if (path === "process.exit") builder.emit({ op: "exit", code: first ?? literal(0) });
    else if (path === "process.kill") {
      builder.emit({
        op: "kill",
        pid: first ?? literal(0),
        signal: second?.kind === "literal" ? Number(second.value) : 15,
      });
    } else if (path === "fs.writeFileSync" || path === "fs.appendFileSync") {
      const after = builder.label();
      const file = first ?? literal("");
      builder.emit({ op: "open", path: file, append: path === "fs.appendFileSync", orElse: after });
      builder.emit({ op: "write", to: { path: file }, value: second ?? literal("") });
      builder.place(after);
    } else throw new SyntaxError(`not supported: ${path}()`);
  }

  #timer(again: boolean): void {
    this.#reader.expect("(");
    const place = this.#function(this.#timers);
    this.#reader.expect(",");
    const delayMs = this.#expression();
    this.#reader.expect(")");
    this.#builder.emit({ op: "timer", to: place, delayMs, again });
  }

  /** `require("net").createServer((c) => c.pipe(c)).listen(PORT, HOST, () => …)`: an echo, the one server there is. */
  #listen(): void {
    const reader = this.#reader;
    while (reader.peek().text !== "listen") {
      if (reader.take().type === "end") throw new SyntaxError("not supported: createServer() without listen()");
    }
    reader.expect("listen");
    reader.expect("(");
    const listening = this.#builder.label();
    const port = this.#expression();
    let announced = listening;
    while (reader.accept(",")) {
      if (reader.peek().text === "(") announced = this.#function(listening);
      else this.#expression();
    }
    reader.expect(")");
    this.#builder.place(listening);
    this.#builder.emit({ op: "listen", port, announced });
  }

  /** `() => …`: its body lies in the program's way, which jumps over it, and ends with a jump to `then`. */
  #function(then: number): number {
    const [place, skipped] = [this.#builder.label(), this.#builder.label()];
    this.#reader.expect("(");
    this.#reader.expect(")");
    this.#reader.expect("=>");
    this.#builder.emit({ op: "jump", to: skipped });
    this.#builder.place(place);
    if (this.#reader.accept("{")) this.statements("}");
    else this.#simple();
    this.#builder.emit({ op: "jump", to: then });
    this.#builder.place(skipped);
    return place;
  }

  #throw(syntax: Syntax): void {
    const message = syntax.type === "call" ? syntax.positional[0] : syntax;
    const name = syntax.type === "call" ? `${calleePath(syntax.callee)}: ` : "";
    const parts = [
      literal(`Uncaught:\n${name}`),
      message === undefined ? literal("") : lowerNode(message),
      literal("\n"),
    ];
    this.#builder.emit({ op: "fail", message: { kind: "join", parts }, code: 1 });
  }

  #expression(): Expression {
    return lowerNode(parseExpression(this.#reader, "node"));
  }
}
