import { allContests, meetsAim, ratioTo, type Findings } from "../result.ts";
import { formatAim, formatKinds, formatRatio, formatSummary } from "./format.ts";

/** The results of a group, for a terminal. */
export function renderForTerminal(findings: Findings): string {
  const lines = [
    ...allContests(findings).flatMap((contest) => [
      contest.title,
      ...contest.sides.map((side) => {
        const ratio = ratioTo(contest, side);
        const times = ratio === undefined ? "" : `  ${formatRatio(ratio)}`;
        return `  ${side.name.padEnd(22)} ${formatSummary(side.summary, contest.unit)}${times}`;
      }),
      ...(contest.aim === undefined
        ? []
        : [`  aim ${formatAim(contest.aim)}: ${meetsAim(contest) === true ? "met" : "NOT MET"}`]),
    ]),
    ...findings.curves.flatMap(({ title, series, x, y }) => [
      `${title}, by ${x}`,
      ...series.map(({ name, points }) => {
        const shown = points.map((point) => `${point.x}: ${formatSummary(point.summary, y)}`);
        return `  ${name.padEnd(30)} ${shown.join("; ")}`;
      }),
    ]),
    ...findings.requests.map(({ operation, store, byKind }) => `${operation}, ${store}: ${formatKinds(byKind)}`),
    ...findings.notes,
    ...findings.skipped.map(({ what, why }) => `Not measured: ${what}: ${why}`),
  ];
  return lines.map((line) => `${line}\n`).join("");
}
