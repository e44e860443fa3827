import type { ComparedSandbox, Comparison } from "@sandboxer/client";
import { formatBytes } from "./bytes.ts";
import type { Paint } from "./colour.ts";
import { nameOf, shortId } from "./sandboxes.ts";
import { formatDiff } from "./snapshots.ts";
import { formatTable, visible, visibleLines } from "./table.ts";
import { formatMs } from "./time.ts";

/** The end of each output is shown; `--json` has all of it. */
const SHOWN_LINES = 20;

/** A table with a line for each sandbox, then the changed files and the output of each. */
export function formatComparison({ base, items }: Comparison, paint: Paint, files: number): string {
  const hasRun = items.some(({ run }) => run !== null);
  const head = ["ID", "NAME", "FILES", "PROCESSES", "PORTS", "MEMORY", "DISK", "CPU", ...(hasRun ? ["COMMAND"] : [])];
  const table = formatTable([
    head,
    ...items.map((item) => [...factsOf(item), ...(hasRun ? [endOf(item, paint)] : [])]),
  ]);
  const than = base.kind === "snapshot" ? `snapshot ${shortId(base.id)}` : `sandbox ${shortId(base.id)}`;
  const sections = items.flatMap((item) => [
    section(`Files of ${nameOf(item)}, compared with ${than}`, changesOf(item, paint, files), paint),
    section(`Output in ${nameOf(item)}`, outputOf(item), paint),
    section(`Problems with ${nameOf(item)}`, item.problems.map((line) => `${visible(line)}\n`).join(""), paint),
  ]);
  return table + sections.join("");
}

function factsOf({ id, name, files, processes, ports, usage }: ComparedSandbox): string[] {
  return [
    shortId(id),
    visible(name ?? "-"),
    files === null ? "?" : `+${files.added} ~${files.changed} -${files.removed}`,
    processes === null ? "?" : String(processes.length),
    ports === null ? "?" : ports.map(({ port }) => port).join(",") || "-",
    usage === null ? "?" : formatBytes(usage.memoryBytes),
    usage === null ? "?" : formatBytes(usage.diskBytes),
    usage === null ? "?" : formatMs(usage.cpuMs),
  ];
}

function endOf({ run }: ComparedSandbox, paint: Paint): string {
  if (run === null) return "?";
  const how = run.signal === null ? `exit ${run.exitCode}` : run.signal;
  return paint(run.timedOut ? `${how}, timed out` : how, run.exitCode === 0 ? "green" : "red");
}

function changesOf({ files }: ComparedSandbox, paint: Paint, shown: number): string {
  if (files === null || files.changes.length === 0 || shown === 0) return "";
  const wire = files.changes.slice(0, shown).map(({ path, change, kind }) => ({ path, change, kind }));
  const left = files.added + files.changed + files.removed - wire.length;
  return formatDiff({ changes: wire }, paint) + (left > 0 ? `… ${left} more\n` : "");
}

function outputOf({ run }: ComparedSandbox): string {
  if (run === null) return "";
  const lines = visibleLines(run.stdout + run.stderr)
    .trimEnd()
    .split("\n");
  const left = lines.length - SHOWN_LINES;
  const shown = lines.slice(-SHOWN_LINES).join("\n");
  if (shown === "") return "";
  return (left > 0 ? `… ${left} lines before\n` : "") + `${shown}\n`;
}

function section(title: string, text: string, paint: Paint): string {
  return text === "" ? "" : `\n${paint(visible(title), "bold")}\n${text}`;
}
