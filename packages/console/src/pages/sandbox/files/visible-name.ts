/**
 * A piece of a name: text, or a placeholder for a character that is invisible or would change how others are displayed.
 */
export interface NamePart {
  readonly text: string;
  /** The placeholder, such as `U+202E`. */
  readonly code?: string;
}

/**
 * Control characters, bidirectional controls, zero-width characters, line breaks, tags, and the replacement of invalid
 * UTF-8. Joiners stay: many languages need them.
 */
const UNSEEN =
  // oxlint-disable-next-line no-control-regex -- They are what is looked for.
  /[\u0000-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFD\u{E0000}-\u{E007F}]|\p{Surrogate}|^\s|\s$/gu;

const SPACE = "U+0020";
const ESCAPES: Readonly<Record<string, string>> = {
  "\n": String.raw`\n`,
  "\r": String.raw`\r`,
  "\t": String.raw`\t`,
  " ": "␣",
};

/** A name as displayed, without invisible characters. */
export function visibleName(name: string): readonly NamePart[] {
  const parts: NamePart[] = [];
  let end = 0;
  for (const { 0: character, index } of name.matchAll(UNSEEN)) {
    if (index > end) parts.push({ text: name.slice(end, index) });
    parts.push(signFor(character));
    end = index + character.length;
  }
  if (end < name.length) parts.push({ text: name.slice(end) });
  return parts;
}

/** The same as one text, for labels and titles. */
export function plainName(name: string): string {
  return visibleName(name)
    .map(({ text }) => text)
    .join("");
}

/** As text that can be typed: other characters become underscores. */
export function typableName(name: string): string {
  return visibleName(name)
    .map(({ text, code }) => (code === undefined ? text : code === SPACE ? " " : "_"))
    .join("");
}

/** Whether some of its bytes are not UTF-8, so that it cannot be requested by its name. */
export function isBroken(name: string): boolean {
  return name.includes("\uFFFD");
}

/** A shell pattern for a broken name: characters unchanged; invalid bytes match one or more bytes. */
export function patternOf(name: string): string {
  return name.replaceAll(/[\\*?[\]]/g, String.raw`\$&`).replaceAll(/\uFFFD+/g, "?*");
}

function signFor(character: string): NamePart {
  const point = character.codePointAt(0) ?? 0;
  const code = `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
  const escape = ESCAPES[character];
  if (escape !== undefined) return { text: escape, code };
  if (point <= 0x9f) return { text: String.raw`\x${point.toString(16).padStart(2, "0")}`, code };
  if (point === 0xff_fd) return { text: "�", code: "bytes that are not UTF-8" };
  return { text: `[${code}]`, code };
}
