import { NO_PLACE, parseTable, renderTable, splitPage } from "./markdown.ts";
import type { Observation } from "./observation.ts";
import { mergeTables, tableOf, type Cell, type Table } from "./table.ts";

/** The differences between the page and the results; columns of untested backends count as correct. */
export function differencesFrom(page: string, observations: readonly Observation[]): string[] {
  const seen = tableOf(observations);
  if (seen.columns.length === 0) return [];
  const parts = splitPage(page);
  if (parts === undefined) return [NO_PLACE];
  const written = parseTable(parts.table);
  const differences = [...differentCells(written, seen), ...goneRows(written, seen)];
  if (differences.length > 0) return differences;
  const same = renderTable(mergeTables(written, seen)) === parts.table;
  return same ? [] : ["the order of the rows, or the format of the table"];
}

/** Backends that are on the page and were not tested. */
export function columnsNotSeen(page: string, observations: readonly Observation[]): string[] {
  const seen = new Set(observations.filter(({ outcome }) => outcome !== "unknown").map(({ backend }) => backend));
  return parseTable(splitPage(page)?.table ?? "").columns.filter((column) => !seen.has(column));
}

/** The page with the new results; the rest stays unchanged. */
export function withObservations(page: string, observations: readonly Observation[]): string {
  const parts = splitPage(page);
  if (parts === undefined) throw new Error(NO_PLACE);
  const table = mergeTables(parseTable(parts.table), tableOf(observations));
  return `${parts.before}\n${renderTable(table)}\n${parts.after}`;
}

function differentCells(written: Table, seen: Table): string[] {
  return [...seen.rows].flatMap(([row, cells]) =>
    [...cells].flatMap(([column, cell]) => {
      const [before, now] = [describe(written.rows.get(row)?.get(column)), describe(cell)];
      return before === now ? [] : [`row "${row}", ${column}: the page has ${before}, the suite saw ${now}`];
    }),
  );
}

function goneRows(written: Table, seen: Table): string[] {
  const gone = [...written.rows.keys()].filter((row) => !seen.rows.has(row));
  return gone.map((row) => `row "${row}": the contract has no such part`);
}

function describe(cell: Cell | undefined): string {
  if (cell === undefined) return "nothing";
  return `"${[cell.answer, ...cell.notes].join("; ")}"`;
}
