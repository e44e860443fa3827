import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeArguments, parseArguments, USAGE, type BenchArguments } from "./arguments.ts";
import { CleanUp } from "./clean-up.ts";
import type { Lab } from "./lab.ts";
import { describeMachine, loadNow } from "./machine.ts";
import { MEASUREMENTS } from "./measurements/index.ts";
import { readServerSpec } from "./raw/bundle.ts";
import { RawEngine } from "./raw/raw-engine.ts";
import type { Results } from "./report/results.ts";
import { renderTable } from "./report/table.ts";
import { writeReports } from "./report/write-reports.ts";
import { mergeFindings, NO_FINDINGS } from "./result.ts";
import { ClientSession } from "./server/client-session.ts";
import { engineOf, startServer } from "./server/server-process.ts";

const argv = process.argv.slice(2);
if (argv.includes("--help")) {
  process.stdout.write(USAGE);
} else {
  const cleanUp = new CleanUp();
  cleanUp.onSignals();
  try {
    await bench(parseArguments(argv), cleanUp);
  } finally {
    await cleanUp.run();
  }
}

async function bench(options: BenchArguments, cleanUp: CleanUp): Promise<void> {
  const loadAtStart = loadNow();
  const lab = await openLab(options, cleanUp);
  let findings = NO_FINDINGS;
  for (const [name, measure] of Object.entries(MEASUREMENTS)) {
    if (options.only.length > 0 && !options.only.includes(name)) continue;
    findings = mergeFindings(findings, await measure(lab));
  }
  const results: Results = {
    date: new Date().toISOString(),
    command: describeArguments(options),
    quick: options.quick,
    machine: describeMachine(loadAtStart),
    engine: lab.engine,
    ...findings,
    serverResidentMiB: await lab.server.residentMiB(),
  };
  await writeReports(results, options);
  process.stdout.write(renderTable(results));
}

async function openLab(options: BenchArguments, cleanUp: CleanUp): Promise<Lab> {
  const scratch = await mkdtemp(join(tmpdir(), "sandboxer-bench-"));
  cleanUp.add(() => rm(scratch, { recursive: true, force: true }));
  const progress = (line: string): void => void process.stderr.write(`${line}\n`);
  progress("Starting the server");
  const flags = options.runscPath === undefined ? [] : [`--runsc=${options.runscPath}`];
  const places = { store: join(scratch, "store"), dataHome: join(scratch, "data") };
  const server = await startServer({ ...places, flags }, cleanUp);
  const engine = await engineOf(server);
  const sample = await ClientSession.create(server.url);
  const raw = new RawEngine(engine, await readServerSpec(server.runDirectory), join(scratch, "raw"), cleanUp);
  await raw.open();
  await sample.destroy();
  return { server, engine, raw, quick: options.quick, scratch, cleanUp, progress };
}
