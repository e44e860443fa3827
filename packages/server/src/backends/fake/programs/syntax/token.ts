import type { Value } from "../instruction.ts";

export interface Token {
  readonly type: "name" | "literal" | "template" | "symbol" | "newline" | "indent" | "dedent" | "end";
  readonly text: string;
  /** The value of a literal. */
  readonly value?: Value;
  /** The parts of a template: text and code alternately. */
  readonly parts?: readonly { readonly text?: string; readonly code?: string }[];
}

/** Walks over tokens. */
export class TokenReader {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  peek(ahead = 0): Token {
    return this.#tokens[this.#next + ahead] ?? { type: "end", text: "end of input" };
  }

  take(): Token {
    const token = this.peek();
    this.#next += 1;
    return token;
  }

  /** Takes the token if it is this symbol or name. */
  accept(text: string): boolean {
    const token = this.peek();
    if (token.text !== text || token.type === "literal" || token.type === "template") return false;
    this.#next += 1;
    return true;
  }

  expect(text: string): void {
    if (!this.accept(text)) throw new SyntaxError(`expected '${text}' at '${this.peek().text}'`);
  }

  name(): string {
    const token = this.take();
    if (token.type !== "name") throw new SyntaxError(`expected a name at '${token.text}'`);
    return token.text;
  }
}
