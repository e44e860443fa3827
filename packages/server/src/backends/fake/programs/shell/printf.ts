import { type Expression, literal } from "../instruction.ts";
import type { CommandContext } from "./command-context.ts";
import type { Word } from "./word.ts";

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "\\": "\\", '"': '"', "'": "'" };

/** `printf FORMAT …` with %s, %d, %%, \n, \t, \r, \xHH and \NNN; the format is used once. */
export function compilePrintf({ builder, stdout }: CommandContext, [format, ...values]: readonly Word[]): void {
  const parts: Expression[] = [];
  const left = values.map((word) => word.expression);
  for (const [piece] of formatText(format).matchAll(/%[sd%]|\\x[0-9a-fA-F]{1,2}|\\[0-7]{1,3}|\\.|[^%\\]+|[%\\]/gs)) {
    if (piece === "%s" || piece === "%d") parts.push(left.shift() ?? literal(piece === "%d" ? "0" : ""));
    else parts.push(literal(unescape(piece)));
  }
  builder.emit({ op: "write", to: stdout, value: { kind: "join", parts } });
}

function unescape(piece: string): string {
  if (piece === "%%") return "%";
  if (piece.startsWith("\\x")) return String.fromCharCode(Number.parseInt(piece.slice(2), 16));
  if (/^\\[0-7]/.test(piece)) return String.fromCharCode(Number.parseInt(piece.slice(1), 8) & 0xff);
  return piece.startsWith("\\") ? (ESCAPES[piece.slice(1)] ?? piece) : piece;
}

/** The format must be a literal. */
function formatText(word: Word | undefined): string {
  const parts = word?.expression.kind === "join" ? word.expression.parts : word === undefined ? [] : [word.expression];
  return parts
    .map((part) => {
      if (part.kind !== "literal") throw new SyntaxError("not supported: printf with a format that is not literal");
      return String(part.value);
    })
    .join("");
}
