/** Names from sandboxes must not move the cursor or colour the screen. */
const CONTROL = /[\p{Cc}\p{Cf}]/gu;
// oxlint-disable-next-line no-control-regex -- colours are the one control sequence that we write ourselves
const COLOUR = /\u001B\[\d+m/g;

/** Columns padded to their widest cell, except the last. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, widthOf(cell))));
  return rows
    .map((row) =>
      row.map((cell, index) => (index === row.length - 1 ? cell : pad(cell, widths[index] ?? 0))).join("  "),
    )
    .map((line) => `${line.trimEnd()}\n`)
    .join("");
}

/** A record, one field per line; missing fields are left out. */
export function formatFields(fields: Readonly<Record<string, string | number | boolean | null | undefined>>): string {
  const shown = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return formatTable(shown.map(([name, value]) => [name, visible(String(value))]));
}

/** Foreign text, made safe to show. */
export function visible(text: string): string {
  return text.replaceAll(CONTROL, "�");
}

/** The same for text that may have several lines. */
export function visibleLines(text: string): string {
  return text.replaceAll(CONTROL, (character) => (character === "\n" || character === "\t" ? character : "�"));
}

function pad(cell: string, width: number): string {
  return cell + " ".repeat(Math.max(0, width - widthOf(cell)));
}

function widthOf(cell: string): number {
  return Array.from(cell.replaceAll(COLOUR, "")).length;
}
