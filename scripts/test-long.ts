/**
 * `npm run test:long`: tests that take too long for every `npm test`, one part after the other. The parts are `long` (the
 * model of the ownership protocol, and the image of deploy/Dockerfile), `gvisor` (every test on both engines), `chaos` (every backend on every store),
 * `simulation` and `hostile`; `npm run test:long -- long chaos` runs only those. `gvisor` includes `adapters`, the tests
 * of the Python adapters for agent frameworks, which can be named alone. `--log` adds the outcome to
 * docs/reference/long-runs.md.
 */
import { execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { prepareDebianPrograms } from "../test/kit/services/debian-programs.ts";
import { prepareDeployPrograms } from "../test/kit/services/deploy-programs.ts";
import { preparePython } from "../test/kit/services/python-environment.ts";
import { prepareStoreServers } from "../test/kit/store-servers/prepare.ts";
import { planChaosSuites } from "./testing/chaos.ts";
import { planGvisorSuites, type Planned, type SkippedSuite } from "./testing/engines.ts";
import { runSuite } from "./testing/run-suite.ts";
import { simulation, titleOf, vitestSuite, type SuiteResult } from "./testing/suite.ts";
import { summaryOf } from "./testing/summary.ts";

const PAGE = new URL("../docs/reference/long-runs.md", import.meta.url).pathname;
const LIMIT_MS = 60 * 60_000;
const { values, positionals } = parseArgs({
  options: { log: { type: "boolean", default: false } },
  allowPositionals: true,
});
const named = (name: string): boolean => positionals.includes(name);
const wanted = (name: string): boolean => positionals.length === 0 || named(name);
const report = (line: string): void => void process.stdout.write(`${line}\n`);

const hostile = vitestSuite("hostile", LIMIT_MS, "50000 inputs", { SANDBOXER_HOSTILE_INPUTS: "50000" });
if (wanted("gvisor") || named("adapters")) await preparePython(report);
const engines = wanted("gvisor") || wanted("chaos") || named("adapters") ? await planGvisorSuites("all") : [];
if (wanted("chaos")) await prepareStoreServers(report);
if (wanted("long")) {
  await prepareDebianPrograms(report);
  await prepareDeployPrograms(report);
}
const parts: readonly Planned[] = [
  vitestSuite("long", LIMIT_MS),
  simulation(20_000),
  ...engines,
  ...(named("adapters") ? engines.slice(-1).map(onlyAdapters) : []),
  ...planChaosSuites(engines, "all"),
  { ...hostile, argv: [...hostile.argv, `--testTimeout=${LIMIT_MS}`] },
];

const results: SuiteResult[] = [];
for (const part of parts.filter(({ name }) => wanted(name))) {
  results.push("skippedBecause" in part ? skipped(part) : await runSuite(part));
}
process.stdout.write(summaryOf(results));
process.exitCode = results.every(({ failed }) => failed === 0) ? 0 : 1;

if (values.log) {
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: new URL("..", import.meta.url) });
  const date = new Date().toISOString().slice(0, 10);
  for (const { title, passed, failed, elapsedMs, skippedBecause } of results) {
    const outcome = skippedBecause ?? `${passed} passed, ${failed} failed`;
    const minutes = (elapsedMs / 60_000).toFixed(1);
    appendFileSync(PAGE, `| ${date} | ${commit.toString().trim()} | ${title} | ${outcome} | ${minutes} min |\n`);
  }
}

/** On the newest engine. */
function onlyAdapters(suite: Planned): Planned {
  const name = "adapters";
  return "skippedBecause" in suite
    ? { ...suite, name }
    : { ...suite, name, argv: [...suite.argv, "scripts/test/python-adapters.long.gvisor.test.ts"] };
}

function skipped(part: SkippedSuite): SuiteResult {
  return { title: titleOf(part), passed: 0, failed: 0, elapsedMs: 0, skippedTests: [], ...part };
}
