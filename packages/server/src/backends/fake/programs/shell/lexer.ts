import { type Word, readWord } from "./word.ts";

export type ShellToken =
  | { readonly type: "word"; readonly word: Word }
  /** `;`, `&`, `&&`, `||`, `|`, `(`, `)`; a line end is `;`. */
  | { readonly type: "operator"; readonly text: string }
  | {
      readonly type: "redirect";
      readonly from: "stdout" | "stderr" | "stdin";
      readonly append: boolean;
      readonly to: Word | "stdout" | "stderr";
    };

const REDIRECT = /([012]?)(>>|>&|>|<)[ \t]*/y;
const OPERATOR = /&&|\|\||[;&|()\n]/y;

/** Turns bash (as bytes) into tokens. */
export function lexShell(code: string): ShellToken[] {
  const tokens: ShellToken[] = [];
  let at = 0;
  while (at < code.length) {
    const blank = /(?:[ \t\r]|\\\n|(?<=^|\s|;)#[^\n]*)*/y;
    blank.lastIndex = at;
    at += blank.exec(code)?.[0].length ?? 0;
    if (at >= code.length) break;
    REDIRECT.lastIndex = at;
    const redirect = REDIRECT.exec(code);
    if (redirect !== null) {
      at += redirect[0].length;
      at += addRedirect(redirect[1] ?? "", redirect[2] ?? "", code, at, tokens);
      continue;
    }
    OPERATOR.lastIndex = at;
    const operator = OPERATOR.exec(code)?.[0];
    if (operator !== undefined) {
      tokens.push({ type: "operator", text: operator === "\n" ? ";" : operator });
      at += operator.length;
      continue;
    }
    const { word, length } = readWord(code, at);
    tokens.push({ type: "word", word });
    at += length;
  }
  return tokens;
}

function addRedirect(descriptor: string, sign: string, code: string, at: number, tokens: ShellToken[]): number {
  const from = sign === "<" ? "stdin" : descriptor === "2" ? "stderr" : "stdout";
  if (sign === ">&") {
    tokens.push({ type: "redirect", from, append: true, to: code[at] === "2" ? "stderr" : "stdout" });
    return 1;
  }
  const { word, length } = readWord(code, at);
  if (length === 0) throw new SyntaxError("syntax error near unexpected token `newline'");
  tokens.push({ type: "redirect", from, append: sign === ">>", to: word });
  return length;
}
