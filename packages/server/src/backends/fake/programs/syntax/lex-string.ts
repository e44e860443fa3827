import type { Token } from "./token.ts";

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "0": "\0", "\n": "" };

/** A string at `at`, if one begins there: '…', "…", '''…''', f"…" and b"…" of Python, `…` of JavaScript. */
export function lexString(
  code: string,
  at: number,
  language: "python" | "node",
): { token: Token; length: number } | undefined {
  const prefix = language === "python" ? (/^[fFbB](?=["'])/.exec(code.slice(at, at + 2))?.[0].toLowerCase() ?? "") : "";
  const open = at + prefix.length;
  const first = code[open] ?? "";
  if (first !== '"' && first !== "'" && !(first === "`" && language === "node")) return undefined;
  const triple = language === "python" && code.startsWith(first.repeat(3), open);
  const quote = triple ? first.repeat(3) : first;
  const hole = first === "`" ? "${" : prefix === "f" ? "{" : undefined;
  const parts: { text?: string; code?: string }[] = [];
  let text = "";
  let position = open + quote.length;
  while (!code.startsWith(quote, position)) {
    if (position >= code.length) throw new SyntaxError("unterminated string literal");
    if (hole !== undefined && code.startsWith(hole, position) && !code.startsWith("{{", position)) {
      const end = code.indexOf("}", position);
      if (end === -1) throw new SyntaxError("unterminated template");
      parts.push({ text }, { code: code.slice(position + hole.length, end) });
      text = "";
      position = end + 1;
      continue;
    }
    const [character, length] = lexCharacter(code, position);
    text += character;
    position += length;
  }
  const length = position + quote.length - at;
  parts.push({ text });
  const token: Token =
    hole === undefined
      ? { type: "literal", text: "string", value: text }
      : { type: "template", text: "template", parts };
  return { token, length };
}

/** One character of a string and how much code it takes. Code is bytes, so `\u` gives the bytes of UTF-8. */
function lexCharacter(code: string, at: number): [string, number] {
  if (code[at] !== "\\") return [code[at] ?? "", 1];
  const numbered = /^\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]+)\})/.exec(code.slice(at, at + 12));
  if (numbered !== null) {
    const point = Number.parseInt(numbered[1] ?? numbered[2] ?? numbered[3] ?? "0", 16);
    return [Buffer.from(String.fromCodePoint(point), "utf8").toString("latin1"), numbered[0].length];
  }
  const escaped = code[at + 1] ?? "";
  return [ESCAPES[escaped] ?? escaped, 2];
}
