/**
 * `npm test`: static checks, unit tests, the lease protocol's simulation, servers that
 * are killed at every step, the agent's tests, the stores' tests on real
 * servers, extensions on a real Docker and sshd, the Docker backend on a real engine, the console in a real browser, and the
 * gVisor suite once for each engine.
 * `npm test -- lint unit` runs only the suites with those names. What they saw of the backends' contract must be what
 * the table of `docs/backends.md` says.
 *
 * A suite whose needs are missing is skipped with the reason; with CI=true that is a failure.
 */
import { findCompiler } from "@sandboxer/server/setup";
import { prepareChromium } from "../packages/server/test/services/chromium.ts";
import { prepareDebianPrograms, whyNoServices } from "../packages/server/test/services/debian-programs.ts";
import { prepareStoreServers } from "../packages/server/test/store/servers/prepare.ts";
import { checkBackendTable } from "./testing/backend-table/check.ts";
import { planConsoleSuite } from "./testing/console.ts";
import { planDockerSuite } from "./testing/docker.ts";
import { context, planGvisorSuites, type Planned } from "./testing/engines.ts";
import { runSuite } from "./testing/run-suite.ts";
import { SIMULATION, STATIC_SUITES, titleOf, vitestSuite, type SuiteResult } from "./testing/suite.ts";
import { printSummary } from "./testing/summary.ts";

const QUICK_TIMEOUT_MS = 8 * 60_000;
const strict = process.env["CI"] === "true";
const selected = process.argv.slice(2);
const wanted = (name: string): boolean => selected.length === 0 || selected.includes(name);

const results: SuiteResult[] = [];
// Building an engine waits for the network and for Go; the static checks need neither.
const gvisorSuites = ["gvisor", "docker", "console"].some(wanted) ? planGvisorSuites() : Promise.resolve([]);
for (const suite of STATIC_SUITES) await runPlanned(suite);
const enginesReady = await gvisorSuites;
const storesReady = wanted("stores") ? prepareStoreServers((line) => process.stdout.write(`${line}\n`)) : undefined;
const servicesReady =
  wanted("extensions") || wanted("docker")
    ? prepareDebianPrograms((line) => process.stdout.write(`${line}\n`))
    : undefined;
const browserReady = wanted("console") ? prepareChromium((line) => process.stdout.write(`${line}\n`)) : undefined;
await runPlanned(vitestSuite("unit", QUICK_TIMEOUT_MS));
await runPlanned(SIMULATION);
await browserReady;
const consoleSuite = wanted("console") ? [await planConsoleSuite(enginesReady)] : [];
// These wait more than they work, for servers that come back, leases that end and pages that change.
await runTogether(vitestSuite("crash", QUICK_TIMEOUT_MS), [planAgent(), ...consoleSuite]);
await Promise.all([storesReady, servicesReady]);
const dockerSuite = wanted("docker") ? [await planDockerSuite(enginesReady)] : [];
await runTogether(vitestSuite("stores", QUICK_TIMEOUT_MS), [planExtensions(), ...dockerSuite]);
// Each waits for its engine about half of the time.
await runTogether(...enginesReady);

const backendTable = checkBackendTable(results);
if (backendTable !== undefined) results.push(backendTable);

process.exitCode = printSummary(results) ? 0 : 1;

function planAgent(): Planned {
  if (findCompiler(context.searchPath) !== undefined) return vitestSuite("agent", QUICK_TIMEOUT_MS);
  return { name: "agent", on: "this machine", skippedBecause: "No C compiler and make here." };
}

function planExtensions(): Planned {
  const missing = whyNoServices();
  if (missing === undefined) return vitestSuite("extensions", QUICK_TIMEOUT_MS);
  return { name: "extensions", on: "Docker and sshd", skippedBecause: missing };
}

/** Side by side; those of a list one after the other. */
async function runTogether(...all: readonly (Planned | readonly Planned[])[]): Promise<void> {
  const inTurn = async (some: readonly Planned[]): Promise<void> => {
    for (const planned of some) await runPlanned(planned, "at the end");
  };
  await Promise.all(all.map((each) => inTurn([each].flat())));
}

async function runPlanned(planned: Planned, output: "as it comes" | "at the end" = "as it comes"): Promise<void> {
  if (!wanted(planned.name)) return;
  const result = "skippedBecause" in planned ? skipped(planned) : await runSuite(planned, output);
  const empty = "skippedBecause" in planned || result.passed + result.failed > 0 ? undefined : "It has no tests.";
  results.push(empty === undefined ? result : skipped({ ...planned, skippedBecause: empty }));
}

function skipped(planned: { name: string; on?: string; skippedBecause: string }): SuiteResult {
  const title = titleOf(planned);
  process.stdout.write(`\n== ${title}: SKIPPED: ${planned.skippedBecause}\n`);
  return {
    title,
    passed: 0,
    failed: strict ? 1 : 0,
    elapsedMs: 0,
    skippedTests: [],
    skippedBecause: planned.skippedBecause,
  };
}
