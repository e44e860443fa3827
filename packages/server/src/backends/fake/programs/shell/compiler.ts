import { type Expression, literal, type Program, STDERR, STDOUT } from "../instruction.ts";
import { ProgramBuilder } from "../program-builder.ts";
import { type Outputs, compileCommand, head } from "./commands.ts";
import { parseShell, type Redirect, type ShellNode } from "./parser.ts";
import type { Word } from "./word.ts";

/** Compiles bash (as bytes). Throws a SyntaxError for unsupported code. */
export function compileShell(code: string): Program {
  const builder = new ProgramBuilder();
  new ShellCompiler(builder).compile(parseShell(code), { stdout: STDOUT, stderr: STDERR });
  return builder.finish("bash");
}

/** One command whose arguments are known, as `execve` would start it. */
export function compileArguments(argv: readonly string[]): Program | undefined {
  const builder = new ProgramBuilder();
  const words = argv.map((text): Word => ({ expression: literal(text), bare: text }));
  const known = compileCommand({ builder, words, stdout: STDOUT, stderr: STDERR });
  return known ? builder.finish("bash") : undefined;
}

class ShellCompiler {
  readonly #builder: ProgramBuilder;

  constructor(builder: ProgramBuilder) {
    this.#builder = builder;
  }

  compile(node: ShellNode, outputs: Outputs): void {
    const builder = this.#builder;
    switch (node.type) {
      case "list":
        for (const item of node.items) this.compile(item, outputs);
        return;
      case "group":
        this.#redirected(node.redirects, outputs, (inner) => this.compile(node.body, inner));
        return;
      case "simple":
        this.#redirected(node.redirects, outputs, (inner) => this.#simple(node.words, inner));
        return;
      case "pipe":
        this.#pipe(node.stages, outputs);
        return;
      case "and":
      case "or": {
        const after = builder.label();
        this.compile(node.left, outputs);
        builder.emit({ op: "jumpOnStatus", success: node.type === "or", to: after });
        this.compile(node.right, outputs);
        builder.place(after);
        return;
      }
      case "background": {
        const after = builder.label();
        builder.emit({ op: "fork", to: after });
        this.compile(node.body, outputs);
        builder.emit({ op: "exit" });
        builder.place(after);
        return;
      }
      case "for":
        this.#for(node, outputs);
        return;
      case "while": {
        const [again, over, after] = [builder.label(), builder.label(), builder.label()];
        builder.place(again);
        this.compile(node.condition, outputs);
        builder.emit({ op: "jumpOnStatus", success: false, to: over });
        builder.loop(again, after, () => this.compile(node.body, outputs));
        builder.emit({ op: "jump", to: again });
        // The condition that ends a loop is not the loop's status.
        builder.place(over);
        builder.emit({ op: "status", from: literal(true) });
        builder.place(after);
        return;
      }
      case "if": {
        const [otherwise, after] = [builder.label(), builder.label()];
        this.compile(node.condition, outputs);
        builder.emit({ op: "jumpOnStatus", success: false, to: otherwise });
        this.compile(node.then, outputs);
        builder.emit({ op: "jump", to: after });
        builder.place(otherwise);
        if (node.otherwise === undefined) builder.emit({ op: "status", from: literal(true) });
        else this.compile(node.otherwise, outputs);
        builder.place(after);
      }
    }
  }

  #for(node: Extract<ShellNode, { type: "for" }>, outputs: Outputs): void {
    const builder = this.#builder;
    const [slot, again, after] = [builder.slot(), builder.label(), builder.label()];
    const range = node.words.length === 1 ? node.words[0]?.range : undefined;
    const end: Expression | undefined =
      range === undefined
        ? undefined
        : {
            kind: "binary",
            operator: "+",
            left: { kind: "unary", verb: "integer", operand: range.to },
            right: literal(1),
          };
    builder.emit({
      op: "loopStart",
      slot,
      source:
        range === undefined || end === undefined
          ? { kind: "values", values: node.words.map((word) => word.expression) }
          : { kind: "range", from: range.from, to: end, step: literal(1) },
    });
    builder.place(again);
    builder.emit({ op: "loopNext", slot, variable: node.variable, to: after });
    builder.loop(again, after, () => this.compile(node.body, outputs));
    builder.emit({ op: "jump", to: again });
    builder.place(after);
  }

  /** Opens the files first, as bash does; when one cannot be opened, the command does not run. */
  #redirected(redirects: readonly Redirect[], outputs: Outputs, body: (inner: Outputs) => void): void {
    const after = this.#builder.label();
    let inner = outputs;
    for (const { from, append, to } of redirects) {
      if (to === "stdout" || to === "stderr") inner = { ...inner, [from]: inner[to] };
      else if (from === "stdin") inner = { ...inner, stdin: to.expression };
      else {
        this.#builder.emit({ op: "open", path: to.expression, append, orElse: after });
        inner = { ...inner, [from]: { path: to.expression } };
      }
    }
    if (inner.stderr === outputs.stderr) body(inner);
    else this.#builder.withErrors(inner.stderr, () => body(inner));
    this.#builder.place(after);
  }

  #simple(words: readonly Word[], outputs: Outputs): void {
    if (words.length === 0) return;
    if (compileCommand({ builder: this.#builder, words, ...outputs })) return;
    const parts = [literal("bash: line 1: "), words[0]?.expression ?? literal(""), literal(": command not found\n")];
    this.#builder.emit({ op: "report", message: { kind: "join", parts }, status: 127 });
  }

  /** Pipes exist for bulk output only: `yes LINE | head -n N` and `yes LINE | head -c N`. */
  #pipe(stages: readonly ShellNode[], outputs: Outputs): void {
    const [source, sink] = stages;
    if (stages.length === 2 && source?.type === "simple" && sink?.type === "simple") {
      const bounds = sink.words[0]?.bare === "head" ? head(sink.words.slice(1)) : undefined;
      if (source.words[0]?.bare === "yes" && bounds !== undefined) {
        const line = source.words[1]?.expression ?? literal("y");
        this.#redirected(sink.redirects, outputs, (inner) => {
          const unit: Expression = { kind: "join", parts: [line, literal("\n")] };
          this.#builder.emit({ op: "repeat", to: inner.stdout, unit, ...bounds });
        });
        return;
      }
    }
    throw new SyntaxError("not supported: this pipe");
  }
}
