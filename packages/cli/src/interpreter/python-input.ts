const OPENING = "([{";
const CLOSING = ")]}";

/**
 * Whether typed lines are a whole piece of Python: no open bracket, string or backslash, and an indented block has a
 * blank line behind it, as in Python's own prompt. Code that is wrong counts as whole, so that Python can say why.
 */
export function isComplete(code: string): boolean {
  const { open, lastToken, indented } = scan(code);
  if (open) return false;
  const lines = code.split("\n");
  const isBlock = indented || lastToken === ":" || /^\s*@/.test(code);
  return !isBlock || (lines.length > 1 && lines.at(-1)?.trim() === "");
}

interface Scanned {
  /** Whether a bracket or a string is open, or the next line continues the last one. */
  readonly open: boolean;
  /** The last character of code. */
  readonly lastToken: string;
  /** Whether a statement is indented. */
  readonly indented: boolean;
}

function scan(code: string): Scanned {
  let depth = 0;
  let lastToken = "";
  let indented = false;
  for (let at = 0; at < code.length; at += 1) {
    const character = code[at] ?? "";
    if (character === "#") {
      // The line break itself is read next.
      at = (code.indexOf("\n", at) + 1 || code.length + 1) - 2;
    } else if (character === '"' || character === "'") {
      const quote = code.startsWith(character.repeat(3), at) ? character.repeat(3) : character;
      const end = endOfString(code, at + quote.length, quote);
      if (end === undefined) return { open: quote.length === 3, lastToken, indented };
      at = end;
      lastToken = character;
    } else {
      if (character === "\n" && depth === 0 && /^[ \t]+[^\s#]/.test(code.slice(at + 1))) indented = true;
      if (OPENING.includes(character)) depth += 1;
      if (CLOSING.includes(character)) depth -= 1;
      if (character.trim() !== "") lastToken = character;
    }
  }
  return { open: depth > 0 || /\\\n?$/.test(code), lastToken, indented };
}

/** Where a string's last quote is; undefined: it has no end. */
function endOfString(code: string, from: number, quote: string): number | undefined {
  for (let at = from; at < code.length; at += 1) {
    if (code[at] === "\\") at += 1;
    else if (quote.length === 1 && code[at] === "\n") return undefined;
    else if (code.startsWith(quote, at)) return at + quote.length - 1;
  }
  return undefined;
}
