import { allContests, joinFindings, type Comparison, type Contest, type Curve, type Findings } from "../result.ts";
import { formatPhases } from "./format.ts";
import type { Results } from "./results.ts";
import { runsSection } from "./runs-section.ts";
import { SECTIONS, type Section } from "./sections.ts";
import { summarySection } from "./summary-section.ts";
import { contestTable, curveTable, requestTable, table } from "./tables.ts";

/** The whole page, with all measurements. */
export function renderPage(results: Results): string {
  const findings = joinFindings(Object.values(results.groups));
  const lines = [
    "# Benchmarks",
    "",
    "This page shows how fast sandboxer is and what it costs, beside others. `npm run bench -- --write-docs` writes it;",
    "[results.json](results.json) has every single value. Times and sizes are medians with their range; `n` is the number of",
    "repeats. A ratio (×) is the first column divided by the column that it is in, computed for each round: below 1× the",
    "first column needs less.",
    "",
    ...runsSection(results),
    ...summarySection(findings),
    ...SECTIONS.flatMap((section) => renderSection(section, results)),
    ...skippedSection(findings),
    ...whatWasDone(allContests(findings)),
  ];
  return `${lines.join("\n").trimEnd()}\n`;
}

/** The file of a curve's plot. */
export function plotName({ id }: Curve): string {
  return `curve-${id}.svg`;
}

/** The file of a section's plot of ratios. */
export function ratiosName({ title }: Section): string {
  return `ratios-${title.toLowerCase().replaceAll(/\W+/g, "-")}.svg`;
}

export function findingsOfSection({ groups }: Section, results: Results): Findings {
  return joinFindings(groups.map((name) => results.groups[name] ?? {}));
}

function renderSection(section: Section, results: Results): string[] {
  const findings = findingsOfSection(section, results);
  const { curves, requests, notes, comparisons } = findings;
  const contests = allContests(findings);
  if (contests.length + curves.length + requests.length === 0) return [];
  return [
    `## ${section.title}`,
    "",
    ...section.about,
    "",
    ...notes.flatMap((note) => [note, ""]),
    ...(contests.length === 0
      ? []
      : [`![Ratios: ${section.title}](${ratiosName(section)})`, "", ...contestTables(contests)]),
    ...phasesTable(comparisons),
    ...curves.flatMap((curve) => [
      `### ${curve.title}`,
      "",
      `![${curve.title}](${plotName(curve)})`,
      "",
      ...curveTable(curve),
      ...curve.notes.flatMap((note) => [note, ""]),
    ]),
    ...(requests.length === 0 ? [] : requestTable(requests)),
  ];
}

/** One table for contests with the same first side. */
function contestTables(contests: readonly Contest[]): string[] {
  const byFirstSide = Map.groupBy(contests, ({ sides }) => sides[0]?.name);
  return [...byFirstSide.values()].flatMap(contestTable);
}

function phasesTable(comparisons: readonly Comparison[]): string[] {
  const rows = comparisons.flatMap(({ title, phases }) =>
    phases === undefined ? [] : [[title, formatPhases(phases.ours), formatPhases(phases.raw)]],
  );
  return rows.length === 0 ? [] : ["Where the time goes, in ms:", "", ...table(["", "sandboxer", "raw runsc"], rows)];
}

function skippedSection({ skipped }: Findings): string[] {
  if (skipped.length === 0) return [];
  return [
    "## Not measured",
    "",
    ...table(
      ["what", "why"],
      skipped.map(({ what, why }) => [what, oneLine(why)]),
    ),
  ];
}

function whatWasDone(contests: readonly Contest[]): string[] {
  const rows = contests.flatMap(({ title, sides }) => sides.map(({ name, what }) => [title, name, oneLine(what)]));
  return ["## Work that was measured", "", ...table(["", "by", "what"], rows)];
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll("|", "\\|");
}
