import { lexString } from "./lex-string.ts";
import type { Token } from "./token.ts";

const SYMBOL = /\/\/=|===|!==|\*\*|\/\/|=>|==|!=|<=|>=|\+=|-=|\*=|\+\+|--|&&|\|\||[-+*/%<>=!()[\]{}.,:;]/y;
const NAME = /[A-Za-z_$][\w$]*/y;
const NUMBER = /\d[\d_]*(?:\.\d+)?|\.\d+/y;

/** Turns Python or JavaScript into tokens. Python's indentation becomes `indent` and `dedent`. */
export function lex(code: string, language: "python" | "node"): Token[] {
  const tokens: Token[] = [];
  const indentation = [0];
  const comment = language === "python" ? "#" : "//";
  // Open brackets. Between round and square ones a line end means nothing; between JavaScript's braces it ends a statement.
  const brackets: string[] = [];
  let at = 0;
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(code)?.[0];
  };
  const add = (token: Token, length: number): void => {
    tokens.push(token);
    at += length;
  };
  if (language === "python") at += openLine(code, at, indentation, tokens);
  while (at < code.length) {
    const character = code[at] ?? "";
    if (character === "\n") {
      const open = brackets.at(-1);
      const endsLine = open === undefined || (open === "{" && language === "node");
      if (endsLine) tokens.push({ type: "newline", text: "newline" });
      at += 1;
      if (endsLine && language === "python") at += openLine(code, at, indentation, tokens);
      continue;
    }
    if (character === " " || character === "\t" || character === "\r") {
      at += 1;
      continue;
    }
    if (code.startsWith(comment, at)) {
      const end = code.indexOf("\n", at);
      at = end === -1 ? code.length : end;
      continue;
    }
    const string = lexString(code, at, language);
    if (string !== undefined) {
      add(string.token, string.length);
      continue;
    }
    const number = match(NUMBER);
    const name = number === undefined ? match(NAME) : undefined;
    const symbol = match(SYMBOL);
    if (number !== undefined)
      add({ type: "literal", text: number, value: Number(number.replaceAll("_", "")) }, number.length);
    else if (name !== undefined) add({ type: "name", text: name }, name.length);
    else if (symbol !== undefined) add({ type: "symbol", text: symbol }, symbol.length);
    else throw new SyntaxError(`invalid character '${character}'`);
    if (symbol !== undefined && "([{".includes(symbol)) brackets.push(symbol);
    if (symbol !== undefined && ")]}".includes(symbol)) brackets.pop();
  }
  tokens.push({ type: "newline", text: "newline" });
  for (; indentation.length > 1; indentation.pop()) tokens.push({ type: "dedent", text: "dedent" });
  return tokens;
}

/** Measures a line's indentation, skips blank lines, and returns how many characters it has passed. */
function openLine(code: string, from: number, indentation: number[], tokens: Token[]): number {
  const blank = /(?:[ \t]*(?:#[^\n]*)?\n)*/y;
  blank.lastIndex = from;
  const skipped = blank.exec(code)?.[0].length ?? 0;
  const spaces = /[ \t]*/y;
  spaces.lastIndex = from + skipped;
  const width = spaces.exec(code)?.[0].length ?? 0;
  if (from + skipped + width >= code.length) return skipped + width;
  if (width > (indentation.at(-1) ?? 0)) {
    indentation.push(width);
    tokens.push({ type: "indent", text: "indent" });
  }
  while (width < (indentation.at(-1) ?? 0)) {
    indentation.pop();
    tokens.push({ type: "dedent", text: "dedent" });
  }
  return skipped + width;
}
