import type { Observation } from "./observation.ts";

/** Backends across, subjects of the contract down. An untested subject has no cell. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: ReadonlyMap<string, ReadonlyMap<string, Cell>>;
}

export interface Cell {
  readonly answer: string;
  /** Why it is not a plain yes. */
  readonly notes: readonly string[];
}

/** A suite that ran more than once, such as gVisor's on each engine, has one column: where the runs differ, `partly`. */
export function tableOf(observations: readonly Observation[]): Table {
  const columns = unique(observations.map(({ backend }) => backend));
  const rows = unique(observations.map(({ subject }) => subject)).map((subject) => {
    const cells = columns.flatMap((backend) => {
      const cell = cellOf(observations.filter((seen) => seen.backend === backend && seen.subject === subject));
      return cell === undefined ? [] : [[backend, cell] as const];
    });
    return [subject, new Map(cells)] as const;
  });
  return { columns, rows: new Map(rows) };
}

/** The table of the page with the new results. Subjects that were never tested are left out. */
export function mergeTables(page: Table, seen: Table): Table {
  const added = seen.columns.filter((column) => !page.columns.includes(column)).toSorted();
  const columns = [...page.columns, ...added];
  const rows = [...(seen.rows.size === 0 ? page : seen).rows.keys()].map((row) => {
    const cells = columns.flatMap((column) => {
      const cell = seen.rows.get(row)?.get(column) ?? page.rows.get(row)?.get(column);
      return cell === undefined ? [] : [[column, cell] as const];
    });
    return [row, new Map(cells)] as const;
  });
  return { columns, rows: new Map(rows) };
}

function cellOf(seen: readonly Observation[]): Cell | undefined {
  // A failed test reports the problem itself.
  if (seen.some(({ outcome }) => outcome === "failed")) return undefined;
  const held = seen.some(({ outcome }) => outcome === "held");
  const lacking = seen.filter(({ outcome }) => outcome === "lacking");
  if (lacking.length === 0) return held ? { answer: "yes", notes: [] } : undefined;
  const answers = unique(lacking.map(({ instead }) => instead ?? "no"));
  const notes = unique(lacking.map(({ reason }) => reason ?? "no reason was given"));
  return { answer: held || answers.length > 1 ? "partly" : answers.join(), notes };
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
