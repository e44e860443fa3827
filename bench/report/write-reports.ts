import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { REPOSITORY, type BenchArguments } from "../arguments.ts";
import { renderMarkdown } from "./markdown.ts";
import { renderPlot } from "./plot.ts";
import type { Results } from "./results.ts";

export async function writeReports(results: Results, options: BenchArguments): Promise<void> {
  const page = renderMarkdown(results);
  const plot = renderPlot(results);
  const folders = [options.outDirectory, ...(options.writeDocs ? [join(REPOSITORY, "docs")] : [])];
  for (const folder of folders) {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "benchmarks.md"), page);
    await writeFile(join(folder, "benchmarks.svg"), plot);
  }
  await writeFile(join(options.outDirectory, "results.json"), `${JSON.stringify(results, undefined, 2)}\n`);
}
