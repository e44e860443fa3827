import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { REPOSITORY, type BenchArguments } from "../arguments.ts";
import { allContests } from "../result.ts";
import { renderCurvePlot } from "./curve-plot.ts";
import { findingsOfSection, plotName, ratiosName, renderPage } from "./page.ts";
import { renderRatioPlot } from "./ratio-plot.ts";
import { withNewer, type GroupResult, type Results } from "./results.ts";
import { SECTIONS } from "./sections.ts";

/** Writes to the folder for results and, on request, to the documentation. Groups without new results stay. */
export async function writeReports(
  measured: Readonly<Record<string, GroupResult>>,
  { outDirectory, writeDocs }: BenchArguments,
): Promise<void> {
  const folders = [outDirectory, ...(writeDocs ? [join(REPOSITORY, "docs/benchmarks")] : [])];
  for (const folder of folders) {
    await mkdir(folder, { recursive: true });
    const before = await readResults(join(folder, "results.json"));
    await writeFolder(folder, withNewer(before, measured));
  }
}

async function writeFolder(folder: string, results: Results): Promise<void> {
  await writeFile(join(folder, "results.json"), `${JSON.stringify(results, undefined, 1)}\n`);
  await writeFile(join(folder, "README.md"), renderPage(results));
  const plots = renderPlots(results);
  for (const [name, plot] of plots) await writeFile(join(folder, name), plot);
  const old = (await readdir(folder)).filter((name) => name.endsWith(".svg") && !plots.has(name));
  for (const name of old) await rm(join(folder, name));
}

/** By the names of their files. */
function renderPlots(results: Results): Map<string, string> {
  const plots = new Map<string, string>();
  for (const section of SECTIONS) {
    const findings = findingsOfSection(section, results);
    const contests = allContests(findings);
    if (contests.length > 0) plots.set(ratiosName(section), renderRatioPlot(section.title, contests));
    for (const curve of findings.curves) plots.set(plotName(curve), renderCurvePlot(curve));
  }
  return plots;
}

/** The results of an earlier run; those of other releases are ignored. */
async function readResults(path: string): Promise<Results> {
  const text = await readFile(path, "utf8").catch(() => "{}");
  const value = JSON.parse(text) as Partial<Results>;
  return value.format === 1 ? (value as Results) : { format: 1, groups: {} };
}
