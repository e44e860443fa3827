import { describeArguments, parseArguments, usage, type BenchArguments } from "./arguments.ts";
import { CleanUp } from "./clean-up.ts";
import { openLab } from "./open-lab.ts";
import { describeMachine, loadNow } from "./machine.ts";
import { GROUPS } from "./measurements/index.ts";
import type { GroupResult } from "./report/results.ts";
import { renderForTerminal } from "./report/terminal.ts";
import { writeReports } from "./report/write-reports.ts";
import { joinFindings, type Findings } from "./result.ts";

const argv = process.argv.slice(2);
const names = Object.keys(GROUPS);
if (argv.includes("--help")) {
  process.stdout.write(usage(names));
} else {
  const cleanUp = new CleanUp();
  cleanUp.onSignals();
  try {
    await bench(parseArguments(argv, names), cleanUp);
  } finally {
    await cleanUp.run();
  }
}

/** Reports are written after each group, so that results survive if a later one is stopped. */
async function bench(options: BenchArguments, cleanUp: CleanUp): Promise<void> {
  const loadAtStart = loadNow();
  const date = new Date().toISOString();
  const lab = await openLab(options, cleanUp);
  const measured: Record<string, GroupResult> = {};
  for (const [name, measure] of Object.entries(GROUPS)) {
    if (options.only.length > 0 && !options.only.includes(name)) continue;
    lab.progress(`\n== ${name}`);
    const startMs = performance.now();
    let hasFailed = false;
    const told = await measure(lab).catch((error: unknown) => {
      hasFailed = true;
      return failed(name, error);
    });
    const findings = joinFindings([told, { skipped: lab.skipped.splice(0) }]);
    const { path: _, ...engine } = lab.engine;
    const run = {
      date,
      command: describeArguments(options),
      quick: options.effort !== "full",
      machine: describeMachine(loadAtStart),
      engine,
      versions: { ...lab.versions },
    };
    const seconds = Math.round((performance.now() - startMs) / 1000);
    for (const each of Object.keys(measured)) measured[each] = { ...(measured[each] as GroupResult), run };
    measured[name] = { ...findings, run, seconds, ...(hasFailed ? { failed: true } : {}) };
    await writeReports(measured, options);
    process.stdout.write(renderForTerminal(findings));
    lab.progress(`== ${name}: ${seconds} s`);
  }
}

/** A failing group does not affect the others. */
function failed(name: string, error: unknown): Partial<Findings> {
  process.exitCode = 1;
  const why = error instanceof Error ? error.message : String(error);
  process.stderr.write(`${name} failed: ${error instanceof Error ? (error.stack ?? why) : why}\n`);
  return { skipped: [{ what: `The whole group \`${name}\``, why: `failed: ${why}` }] };
}
