import { meetsAim, type Comparison } from "../result.ts";
import { formatPhases } from "./format.ts";
import { provenance } from "./provenance.ts";
import type { Results } from "./results.ts";
import { cells } from "./table.ts";

/** The section on the server beside raw runsc. */
export function renderComparisons(results: Results): string {
  const { comparisons } = results;
  return [
    "The same work by the server, over WebSocket, and by `runsc` alone: same engine, flags, sandbox configuration and",
    "machine, in alternating rounds. Medians, with the range and the number of rounds. A ratio is sandboxer / raw runsc.",
    "",
    ...provenance(results),
    "",
    "![Ratios beside their aims](benchmarks.svg)",
    "",
    "| | sandboxer | raw runsc | ratio | aim | |",
    "|---|---|---|---|---|---|",
    ...comparisons.map((comparison) => `| ${cells(comparison).join(" | ")} |`),
    "",
    `Resident memory of the server after all of it: ${results.serverResidentMiB.toFixed(0)} MiB.`,
    "",
    ...verdict(comparisons),
    "## Where the time goes",
    "",
    "| | sandboxer, ms | raw runsc, ms |",
    "|---|---|---|",
    ...comparisons.flatMap(phasesRow),
    "",
    "## What was done",
    "",
    "| | sandboxer | raw runsc |",
    "|---|---|---|",
    ...comparisons.map(({ title, ours, raw }) => `| ${title} | ${ours.what} | ${raw.what} |`),
    "",
  ].join("\n");
}

export function phasesRow({ title, phases }: Comparison): string[] {
  if (phases === undefined) return [];
  return [`| ${title} | ${formatPhases(phases.ours)} | ${formatPhases(phases.raw)} |`];
}

function verdict(comparisons: readonly Comparison[]): string[] {
  const titles = (met: boolean): string[] =>
    comparisons.filter((comparison) => meetsAim(comparison) === met).map(({ title }) => title);
  const sentence = (label: string, list: readonly string[]): string[] =>
    list.length === 0 ? [] : [`**${label}:** ${list.join("; ")}.`, ""];
  return [...sentence("Aims met", titles(true)), ...sentence("Aims not met", titles(false))];
}
