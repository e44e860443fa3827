import type { Results, RunFacts } from "./results.ts";

/** Where, when and on which machine it was measured; groups of one run together. */
export function runsSection({ groups }: Results): string[] {
  const runs = new Map<string, { readonly run: RunFacts; readonly names: string[] }>();
  for (const [name, { run }] of Object.entries(groups)) {
    const entry = runs.get(run.date) ?? { run, names: [] };
    entry.names.push(name);
    runs.set(run.date, entry);
  }
  const newestFirst = [...runs.values()].toSorted((left, right) => right.run.date.localeCompare(left.run.date));
  return ["## Where and how", "", ...newestFirst.flatMap(({ run, names }) => [...describe(run, names), ""])];
}

function describe({ machine, engine, versions, date, command, quick }: RunFacts, names: readonly string[]): string[] {
  const others = Object.entries(versions).map(([name, version]) => `; ${name} ${version}`);
  const loads = machine.loadAverage.map((load) => load.toFixed(1)).join(" at the start, ");
  return [
    `- ${date.slice(0, 16).replace("T", " ")} UTC: \`${command}\`${quick ? " (quick: few repeats)" : ""}: ${names.join(", ")}`,
    `- Machine: ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, Linux ${machine.kernel}, ${machine.fileSystem}`,
    `- runsc ${engine.version}, ${engine.platform}${engine.control === undefined ? "" : `, driven by ${engine.control}`}; Node ${machine.node}; commit ${machine.commit}${others.join("")}`,
    `- Load average of the machine: ${loads} at the end. Other load makes all sides slower, but not equally`,
  ];
}
