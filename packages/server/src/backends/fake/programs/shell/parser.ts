import { lexShell, type ShellToken } from "./lexer.ts";
import type { Word } from "./word.ts";

export type Redirect = Extract<ShellToken, { type: "redirect" }>;

export type ShellNode =
  | { readonly type: "simple"; readonly words: readonly Word[]; readonly redirects: readonly Redirect[] }
  | { readonly type: "pipe"; readonly stages: readonly ShellNode[] }
  | { readonly type: "and" | "or"; readonly left: ShellNode; readonly right: ShellNode }
  | { readonly type: "background"; readonly body: ShellNode }
  | { readonly type: "list"; readonly items: readonly ShellNode[] }
  | { readonly type: "group"; readonly body: ShellNode; readonly redirects: readonly Redirect[] }
  | { readonly type: "for"; readonly variable: string; readonly words: readonly Word[]; readonly body: ShellNode }
  | { readonly type: "while"; readonly condition: ShellNode; readonly body: ShellNode }
  | { readonly type: "if"; readonly condition: ShellNode; readonly then: ShellNode; readonly otherwise?: ShellNode };

export function parseShell(code: string): ShellNode {
  const parser = new ShellParser(lexShell(code));
  const list = parser.list([]);
  parser.end();
  return list;
}

class ShellParser {
  readonly #tokens: readonly ShellToken[];
  #next = 0;

  constructor(tokens: readonly ShellToken[]) {
    this.#tokens = tokens;
  }

  end(): void {
    if (this.#next < this.#tokens.length)
      throw new SyntaxError(`syntax error near unexpected token \`${this.#text()}'`);
  }

  /** Commands up to one of the closing words, which stays. */
  list(closing: readonly string[]): ShellNode {
    const items: ShellNode[] = [];
    for (;;) {
      while (this.#accept(";"));
      const text = this.#text();
      if (text === undefined || closing.includes(text)) return { type: "list", items };
      const item = this.#andOr();
      items.push(this.#accept("&") ? { type: "background", body: item } : item);
      const next = this.#text();
      if (next === undefined || next === ";" || closing.includes(next) || items.at(-1)?.type === "background") continue;
      throw new SyntaxError(`syntax error near unexpected token \`${next}'`);
    }
  }

  #andOr(): ShellNode {
    let left = this.#pipe();
    for (;;) {
      const type = this.#accept("&&") ? "and" : this.#accept("||") ? "or" : undefined;
      if (type === undefined) return left;
      while (this.#accept(";"));
      left = { type, left, right: this.#pipe() };
    }
  }

  #pipe(): ShellNode {
    const stages = [this.#command()];
    while (this.#accept("|")) stages.push(this.#command());
    return stages.length === 1 && stages[0] !== undefined ? stages[0] : { type: "pipe", stages };
  }

  #command(): ShellNode {
    if (this.#accept("(")) return this.#closed(this.list([")"]), ")");
    if (this.#accept("{")) return this.#closed(this.list(["}"]), "}");
    if (this.#accept("for")) return this.#for();
    if (this.#accept("while")) {
      const condition = this.list(["do"]);
      return this.#closed({ type: "while", condition, body: this.#body() }, "done");
    }
    if (this.#accept("if")) return this.#closed(this.#if(), "fi");
    return this.#simple();
  }

  #for(): ShellNode {
    const variable = this.#word()?.bare ?? "";
    this.#expect("in");
    const words: Word[] = [];
    for (let word = this.#word(); word !== undefined; word = this.#word()) words.push(word);
    while (this.#accept(";"));
    return this.#closed({ type: "for", variable, words, body: this.#body() }, "done");
  }

  #body(): ShellNode {
    this.#expect("do");
    return this.list(["done"]);
  }

  #if(): ShellNode {
    const condition = this.list(["then"]);
    this.#expect("then");
    const then = this.list(["else", "fi"]);
    if (!this.#accept("else")) return { type: "if", condition, then };
    return { type: "if", condition, then, otherwise: this.list(["fi"]) };
  }

  #simple(): ShellNode {
    const words: Word[] = [];
    const redirects: Redirect[] = [];
    for (;;) {
      const token = this.#tokens[this.#next];
      if (token?.type === "word") words.push(token.word);
      else if (token?.type === "redirect") redirects.push(token);
      else break;
      this.#next += 1;
    }
    if (words.length === 0 && redirects.length === 0) {
      throw new SyntaxError(`syntax error near unexpected token \`${this.#text() ?? "newline"}'`);
    }
    return { type: "simple", words, redirects };
  }

  /** After the closing word the redirections of the whole may follow. */
  #closed(body: ShellNode, word: string): ShellNode {
    this.#expect(word);
    const redirects: Redirect[] = [];
    for (;;) {
      const token = this.#tokens[this.#next];
      if (token?.type !== "redirect") break;
      redirects.push(token);
      this.#next += 1;
    }
    return { type: "group", body, redirects };
  }

  #text(): string | undefined {
    const token = this.#tokens[this.#next];
    if (token === undefined) return undefined;
    if (token.type === "operator") return token.text;
    return token.type === "word" ? (token.word.bare ?? '"…"') : ">";
  }

  #word(): Word | undefined {
    const token = this.#tokens[this.#next];
    if (token?.type !== "word") return undefined;
    this.#next += 1;
    return token.word;
  }

  #accept(text: string): boolean {
    if (this.#text() !== text) return false;
    this.#next += 1;
    return true;
  }

  #expect(text: string): void {
    if (!this.#accept(text)) throw new SyntaxError(`syntax error near unexpected token \`${this.#text() ?? "EOF"}'`);
  }
}
