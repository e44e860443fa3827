import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { REPOSITORY, type BenchArguments } from "../arguments.ts";
import { renderHandoffs } from "./handoff-section.ts";
import { renderComparisons } from "./markdown.ts";
import { mergePage, type SectionName } from "./page.ts";
import { renderPlot } from "./plot.ts";
import { renderRequests } from "./requests-section.ts";
import type { Results } from "./results.ts";

export async function writeReports(results: Results, options: BenchArguments): Promise<void> {
  const measured: Partial<Record<SectionName, string>> = {
    ...(results.comparisons.length === 0 ? {} : { engine: renderComparisons(results) }),
    ...(results.handoffs.length === 0 ? {} : { handoff: renderHandoffs(results) }),
    ...(results.requests.length === 0 ? {} : { requests: renderRequests(results) }),
  };
  const folders = [options.outDirectory, ...(options.writeDocs ? [join(REPOSITORY, "docs")] : [])];
  for (const folder of folders) {
    await mkdir(folder, { recursive: true });
    const page = join(folder, "benchmarks.md");
    await writeFile(page, mergePage(await readFile(page, "utf8").catch(() => ""), measured));
    if (results.comparisons.length > 0) await writeFile(join(folder, "benchmarks.svg"), renderPlot(results));
  }
  await writeFile(join(options.outDirectory, "results.json"), `${JSON.stringify(results, undefined, 2)}\n`);
}
