import type { Cell, Table } from "./table.ts";

const BEGIN = "<!-- backend table: made by `npm run backend-table -- --write` of what the contract suite saw -->";
const END = "<!-- end of the backend table -->";
const NOT_SEEN = "?";
const CELL = /^(.*?)(?: \((\d+(?:, \d+)*)\))?$/;
const NOTE = /^(\d+)\. (.+)$/;

/** A page with a table in it, between two comments. */
export interface PageWithTable {
  readonly before: string;
  readonly table: string;
  readonly after: string;
}

export function splitPage(page: string): PageWithTable | undefined {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) return undefined;
  const from = begin + BEGIN.length;
  return { before: page.slice(0, from), table: page.slice(from, end).trim(), after: page.slice(end) };
}

export const NO_PLACE = `The page has no place for the table. It needs these two lines:\n${BEGIN}\n${END}`;

export function renderTable({ columns, rows }: Table): string {
  const notes: string[] = [];
  const numberOf = (note: string): number => {
    if (!notes.includes(note)) notes.push(note);
    return notes.indexOf(note) + 1;
  };
  const render = (cell: Cell | undefined): string => {
    if (cell === undefined) return NOT_SEEN;
    return cell.notes.length === 0 ? cell.answer : `${cell.answer} (${cell.notes.map(numberOf).join(", ")})`;
  };
  const lines = [...rows].map(([row, cells]) => [row, ...columns.map((column) => render(cells.get(column)))]);
  const table = [["", ...columns], ...lines].map((cells) => `| ${cells.join(" | ")} |`.replace("|  |", "| |"));
  table.splice(1, 0, `|${"---|".repeat(columns.length + 1)}`);
  const footnotes = notes.map((note, index) => `${index + 1}. ${note}`);
  return [...table, ...(footnotes.length === 0 ? [] : ["", ...footnotes])].join("\n");
}

export function parseTable(text: string): Table {
  const lines = text.split("\n");
  const notes = new Map(lines.flatMap((line) => noteOf(NOTE.exec(line))));
  const [header = [], , ...body] = lines.filter((line) => line.startsWith("|")).map(cellsOf);
  const columns = header.slice(1);
  const rows = body.map(([row = "", ...texts]) => {
    const cells = columns.flatMap((column, index) => {
      const [, answer = "", numbers] = CELL.exec(texts[index] ?? NOT_SEEN) ?? [];
      if (answer === NOT_SEEN) return [];
      const cited = numbers?.split(", ").map((number) => notes.get(number) ?? `(no note ${number})`) ?? [];
      return [[column, { answer, notes: cited }] as const];
    });
    return [row, new Map(cells)] as const;
  });
  return { columns, rows: new Map(rows) };
}

function cellsOf(line: string): string[] {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

function noteOf(match: RegExpExecArray | null): [string, string][] {
  const [, number, note] = match ?? [];
  return number === undefined || note === undefined ? [] : [[number, note]];
}
