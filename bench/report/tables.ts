import { ratioTo, type Contest, type Curve, type RequestCount } from "../result.ts";
import { formatAim, formatKinds, formatPlace, formatRatio, formatSummary, formatVerdict } from "./format.ts";

/** One row for each; a column for each of the sides that take part in any. */
export function contestTable(contests: readonly Contest[]): string[] {
  const names = [...new Set(contests.flatMap(({ sides }) => sides.map(({ name }) => name)))];
  const hasAims = contests.some(({ aim }) => aim !== undefined);
  const rows = contests.map((contest) => [
    contest.title,
    ...names.map((name) => sideCell(contest, name)),
    ...(hasAims ? [formatAim(contest.aim), formatVerdict(contest)] : []),
  ]);
  return table(["", ...names, ...(hasAims ? ["aim", ""] : [])], rows);
}

/** The duration and, for all but the first, its ratio to the first. */
function sideCell(contest: Contest, name: string): string {
  const side = contest.sides.find((each) => each.name === name);
  if (side === undefined) return "–";
  const ratio = ratioTo(contest, side);
  const taken = formatSummary(side.summary, contest.unit);
  return ratio === undefined ? `${taken}, n=${side.summary.count}` : `${taken}<br>${formatRatio(ratio)}`;
}

/** A column for each series. */
export function curveTable({ series, x, y }: Curve): string[] {
  const places = [...new Set(series.flatMap(({ points }) => points.map((point) => point.x)))].toSorted(
    (left, right) => left - right,
  );
  const rows = places.map((place) => [
    formatPlace(place),
    ...series.map(({ points }) => {
      const point = points.find((each) => each.x === place);
      return point === undefined ? "–" : formatSummary(point.summary, y);
    }),
  ]);
  return table([x, ...series.map(({ name }) => name)], rows);
}

export function requestTable(requests: readonly RequestCount[]): string[] {
  const stores = [...new Set(requests.map(({ store }) => store))];
  const operations = [...new Set(requests.map(({ operation }) => operation))];
  const countOf = (operation: string, store: string): string => {
    const found = requests.find((each) => each.operation === operation && each.store === store);
    return found === undefined ? "–" : formatKinds(found.byKind);
  };
  return table(
    ["", ...stores],
    operations.map((operation) => [operation, ...stores.map((store) => countOf(operation, store))]),
  );
}

export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(headings), `|${"---|".repeat(headings.length)}`, ...rows.map(line), ""];
}
