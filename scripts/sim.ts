/**
 * `npm run sim -- --schedules N`: random schedules of faults against the lease protocol's core, on all cores. Ends with
 * 1 and the seed when a promise was broken. `--seed S` begins there (alone: runs only that one), `--bug NAME` plants a
 * bug that must be found, `--faults 3,7` (or `none`) allows only those faults of the seed. `--fleet` runs a day of 100
 * servers and 10,000 sandboxes instead; `--hours`, `--servers` and `--sandboxes` make it smaller.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import type { Batch, BatchResult } from "../packages/server/test/lease/simulation/batch.ts";
import { type Bug, BUGS, isBug } from "../packages/server/test/lease/simulation/bugs.ts";
import { addTally, describeFailure, describeTally } from "../packages/server/test/lease/simulation/report.ts";
import { runSchedule } from "../packages/server/test/lease/simulation/schedule.ts";
import { runFleet } from "../packages/server/test/lease/simulation/fleet/run-fleet.ts";
import { replay, shrink } from "../packages/server/test/lease/simulation/shrink.ts";

const WORKER = new URL("../packages/server/test/lease/simulation/batch-worker.ts", import.meta.url);

const { values } = parseArgs({
  options: {
    schedules: { type: "string" },
    seed: { type: "string" },
    bug: { type: "string" },
    faults: { type: "string" },
    fleet: { type: "boolean", default: false },
    hours: { type: "string" },
    servers: { type: "string" },
    sandboxes: { type: "string" },
  },
});
const bug = bugOf(values.bug);
const firstSeed = whole(values.seed, 1);
const schedules = whole(values.schedules, values.seed === undefined ? 2_000 : 1);

if (values.fleet) process.exitCode = runOneFleet();
else process.exitCode = values.faults === undefined ? await runAll() : replayOne(values.faults);

function runOneFleet(): number {
  const startMs = performance.now();
  const size = {
    servers: whole(values.servers, 100),
    sandboxes: whole(values.sandboxes, 10_000),
    hours: whole(values.hours, 24),
  };
  const { events, tally, requestsPerSecond, violation } = runFleet({
    seed: firstSeed,
    ...size,
    ...(bug === undefined ? {} : { bug }),
    onHour: print,
  });
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  print(`${size.servers} servers, ${size.sandboxes} sandboxes, ${size.hours} h: ${events} events, ${seconds} s`);
  print(describeTally(tally));
  for (const [kind, rate] of Object.entries(requestsPerSecond)) print(`${kind}: ${rate.toFixed(1)}/s`);
  print(violation === undefined ? "no violation" : `seed ${firstSeed}: ${violation}`);
  return violation === undefined ? 0 : 1;
}

async function runAll(): Promise<number> {
  const startMs = performance.now();
  const workers = Math.min(availableParallelism(), schedules);
  const results = await Promise.all(
    Array.from({ length: workers }, (_, index) =>
      inWorker({
        firstSeed: firstSeed + index,
        schedules: Math.ceil((schedules - index) / workers),
        stride: workers,
        bug,
      }),
    ),
  );
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  const [first, ...rest] = results.map(({ tally }) => tally).filter((tally) => tally !== undefined);
  for (const tally of rest) if (first !== undefined) addTally(first, tally);
  const done = results.reduce((sum, result) => sum + result.schedules, 0);
  const events = results.reduce((sum, result) => sum + result.events, 0);
  const fewest = Math.min(...results.map(({ fewestEvents }) => fewestEvents));
  print(`${done} schedules, ${events} events (at least ${fewest} in each), ${seconds} s, ${workers} cores`);
  if (first !== undefined) print(describeTally(first));
  const failed = results.map(({ failedSeed }) => failedSeed).filter((seed) => seed !== undefined);
  if (failed.length === 0) return 0;
  print(describeFailure(shrink(runSchedule(Math.min(...failed), bug), bug), bug));
  return 1;
}

function replayOne(faults: string): number {
  const ordinals = faults === "none" ? [] : faults.split(",").map(Number);
  const result = replay(firstSeed, bug, ordinals);
  if (result.violation === undefined) {
    print(`seed ${firstSeed} with ${result.faults.length} faults: no violation`);
    return 0;
  }
  print(describeFailure({ result, runs: 1, faults: result.faults }, bug));
  return 1;
}

function inWorker(batch: Batch): Promise<BatchResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(WORKER, { workerData: batch });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

function bugOf(name: string | undefined): Bug | undefined {
  if (name === undefined || isBug(name)) return name;
  process.stderr.write(`There is no bug ${name}; there are ${Object.keys(BUGS).join(", ")}.\n`);
  process.exit(2);
}

function whole(text: string | undefined, otherwise: number): number {
  const number = text === undefined ? otherwise : Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  process.stderr.write(`"${text}" is not a whole number above 0.\n`);
  process.exit(2);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
