import { meetsAim, type Comparison } from "../result.ts";
import { formatPhases } from "./format.ts";
import type { Results } from "./results.ts";
import { cells } from "./table.ts";

/** The page that goes into the documentation. */
export function renderMarkdown(results: Results): string {
  const { machine, engine, comparisons, date, command } = results;
  return [
    "# Benchmarks",
    "",
    "The same work by the server, over WebSocket, and by `runsc` alone: same engine, flags, sandbox configuration and",
    "machine, in alternating rounds. Medians, with the range and the number of rounds. A ratio is sandboxer / raw runsc.",
    "",
    `- Machine: ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, Linux ${machine.kernel}`,
    `- Engine: runsc ${engine.version}, ${engine.platform}; Node ${machine.node}; commit ${machine.commit}`,
    `- ${date.slice(0, 16).replace("T", " ")} UTC, \`${command}\`${results.quick ? " (a quick look: few rounds)" : ""}`,
    `- Load average of the machine: ${machine.loadAverage.map((load) => load.toFixed(1)).join(", ")} (start, end)`,
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
    ...comparisons.flatMap(({ title, phases }) =>
      phases === undefined ? [] : [`| ${title} | ${formatPhases(phases.ours)} | ${formatPhases(phases.raw)} |`],
    ),
    "",
    "## What was done",
    "",
    "| | sandboxer | raw runsc |",
    "|---|---|---|",
    ...comparisons.map(({ title, ours, raw }) => `| ${title} | ${ours.what} | ${raw.what} |`),
    "",
  ].join("\n");
}

function verdict(comparisons: readonly Comparison[]): string[] {
  const titles = (met: boolean): string[] =>
    comparisons.filter((comparison) => meetsAim(comparison) === met).map(({ title }) => title);
  const sentence = (label: string, list: readonly string[]): string[] =>
    list.length === 0 ? [] : [`**${label}:** ${list.join("; ")}.`, ""];
  return [...sentence("Aims met", titles(true)), ...sentence("Aims not met", titles(false))];
}
