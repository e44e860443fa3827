import type { Comparison } from "../result.ts";
import { formatAim, formatKinds, formatPhases, formatRatio, formatSummary, formatVerdict } from "./format.ts";
import type { Results } from "./results.ts";

const HEADINGS = ["", "sandboxer", "raw runsc", "ratio", "aim", ""];

/** For a terminal. */
export function renderTable({ handoffs, requests, engine, serverResidentMiB, ...results }: Results): string {
  const comparisons = [...results.comparisons, ...handoffs];
  const rows = [HEADINGS, ...comparisons.map(cells)];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  const phases = comparisons.flatMap(({ title, phases }) => {
    if (phases === undefined) return [];
    const raw = formatPhases(phases.raw);
    return [`  ${title}: ${formatPhases(phases.ours)}${raw === "" ? "" : `; raw: ${raw}`}`];
  });
  return [
    `runsc ${engine.version}, ${engine.platform}`,
    ...lines,
    "",
    "Phases (median ms):",
    ...phases,
    ...requests.map(({ operation, store, byKind }) => `${operation}, ${store}: ${formatKinds(byKind)}`),
    `Server's resident memory after all: ${serverResidentMiB.toFixed(0)} MiB`,
    "",
  ].join("\n");
}

export function cells(comparison: Comparison): string[] {
  const { title, unit, ours, raw } = comparison;
  return [
    title,
    formatSummary(ours.summary, unit),
    formatSummary(raw.summary, unit),
    formatRatio(comparison),
    formatAim(comparison),
    formatVerdict(comparison),
  ];
}
