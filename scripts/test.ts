/**
 * `npm test`: static checks, unit tests, tests of whole servers, the lease protocol's simulation, servers that
 * are killed at every step, servers under random faults, the agent's tests, the Python SDK, the stores' tests on real
 * servers, extensions on a real Docker and sshd, the Docker backend on a real engine, the console in a real browser, and the
 * gVisor suite once for each engine. Suites run side by side as far as the machine has room.
 * `npm test -- lint unit` runs only the suites with those names. Their results of the backends' contract must match
 * the table of `docs/reference/backends.md`.
 *
 * A suite whose needs are missing is skipped with the reason, and so are tests. With CI=true that is a failure, unless
 * `scripts/testing/allowed-skips.ts` allows it by name, or the table of backends says that the backend cannot do it.
 */
import { availableParallelism } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { findCompiler } from "@sandboxer/server/setup";
import { prepareChromium } from "../test/kit/services/chromium.ts";
import { prepareDeployPrograms } from "../test/kit/services/deploy-programs.ts";
import { prepareDebianPrograms, whyNoServices } from "../test/kit/services/debian-programs.ts";
import { preparePython, whyNoPython } from "../test/kit/services/python-environment.ts";
import { prepareStoreServers } from "../test/kit/store-servers/prepare.ts";
import { ALLOWED_SKIPS } from "./testing/allowed-skips.ts";
import { checkBackendTable } from "./testing/backend-table/check.ts";
import { planChaosSuites } from "./testing/chaos.ts";
import { planConsoleSuite } from "./testing/console.ts";
import { planDockerSuite } from "./testing/docker.ts";
import { context, planGvisorSuites, type Planned } from "./testing/engines.ts";
import { inMemory } from "./testing/in-memory.ts";
import { inOwnNetwork } from "./testing/own-network.ts";
import { Room } from "./testing/room.ts";
import { runSuite } from "./testing/run-suite.ts";
import { checkSkips } from "./testing/skips.ts";
import { simulation, STATIC_SUITES, titleOf, vitestSuite, type Suite, type SuiteResult } from "./testing/suite.ts";
import { summaryOf } from "./testing/summary.ts";
import { buildTestCommand } from "./testing/test-command.ts";

const QUICK_TIMEOUT_MS = 30 * 60_000;
const strict = process.env["CI"] === "true";
const selected = process.argv.slice(2);
const wanted = (name: string): boolean => selected.length === 0 || selected.includes(name);

/** The pictures of the console are kept if its suite was requested. */
const pictures = selected.includes("console") ? "kept" : "none";

const results: SuiteResult[] = [];
/** How many workers run at once. About half of them wait; with more, tests with short leases wait too long. */
const room = new Room(Math.max(4, 3 * availableParallelism()));
const report = (line: string): void => void process.stdout.write(`${line}\n`);
/** The command for the servers that suites start as processes. */
const command = ["servers", "crash", "gvisor", "docker", "console", "chaos"].some(wanted)
  ? useTestCommand()
  : undefined;
const python = ["python", "gvisor", "extensions"].some(wanted) ? preparePython(report) : undefined;
// The first suites need no downloads and no builds. One Go build at a time: each takes all processors.
const engines = ["gvisor", "docker", "console", "chaos"].some(wanted) ? planEngines() : Promise.resolve([]);
const stores = engines.then(() => (["stores", "chaos"].some(wanted) ? prepareStoreServers(report) : undefined));
const services = ["extensions", "docker"].some(wanted) ? prepareServices() : undefined;
const browser = wanted("console") ? prepareChromium(report) : undefined;

/** Two private Docker engines on one machine were seen to interfere with each other: one follows the other. */
const extensionsOver = Promise.withResolvers<void>();
const extensions = async (): Promise<readonly Planned[]> => (await services, await python, [planExtensions()]);

/** Short suites leave the room to the longest one, whose engine is known after seconds; building it takes minutes. */
const engineKnown = Promise.race([engines, delay(60_000, undefined, { ref: false })]);

/** By rank: the longest, and those that others wait for, come first. A weight is the number of workers it keeps busy. */
const lanes: readonly [weight: number, suites: () => Promise<readonly Planned[]>][] = [
  [3, async () => [quick("unit"), quick("servers")]],
  [2, async () => (await engines).slice(1)],
  [1, extensions],
  [2, async () => (await extensionsOver.promise, wanted("docker") ? [await planDockerSuite(await engines)] : [])],
  [2, async () => (await browser, wanted("console") ? [await planConsoleSuite(await engines, pictures)] : [])],
  [2, async () => (await engines).slice(0, 1)],
  [2, async () => (await engineKnown, [quick("crash")])],
  // Its servers must keep their leases, so it runs beside little else.
  [2, async () => (await stores, wanted("chaos") ? planChaosSuites(await engines) : [])],
  [1, async () => (await stores, [quick("stores")])],
  [1, async () => (await engineKnown, STATIC_SUITES)],
  [1, async () => (await engineKnown, [planAgent()])],
  [1, async () => (await engineKnown, [simulation(1_000)])],
  [1, async () => (await python, await engineKnown, [planPython()])],
];
// Each running suite listens for the end of this process.
process.setMaxListeners(lanes.length + 10);
await Promise.all(
  lanes.map(async ([weight, suites], rank) => {
    const planned = (await suites()).filter(({ name }) => wanted(name));
    await room.use(rank, planned.length === 0 ? 0 : weight, async () => {
      for (const each of planned) await runPlanned(each);
    });
    if (suites === extensions) extensionsOver.resolve();
  }),
);

const backendTable = checkBackendTable(results);
if (backendTable !== undefined) results.push(backendTable);
const skips = checkSkips(results, ALLOWED_SKIPS);
if (strict && skips.result !== undefined) results.push(skips.result);
if (selected.length === 0) for (const line of skips.unused) report(line);

if (results.length === 0) throw new Error(`No suite is called ${selected.join(" or ")}.`);
process.stdout.write(summaryOf(results));
process.exitCode = results.every(({ failed }) => failed === 0) ? 0 : 1;

async function prepareServices(): Promise<void> {
  await prepareDebianPrograms(report);
  await prepareDeployPrograms(report);
}

/** The suites on real engines, one of whose tests needs Python. */
async function planEngines(): Promise<Planned[]> {
  const [planned] = await Promise.all([planGvisorSuites(), python]);
  return planned;
}

async function useTestCommand(): Promise<void> {
  const built = await buildTestCommand(report);
  if (built !== undefined) process.env["SANDBOXER_TEST_COMMAND"] ??= built;
}

/** A suite without real sandboxes. */
function quick(name: string): Suite {
  return inMemory(vitestSuite(name, QUICK_TIMEOUT_MS));
}

function planAgent(): Planned {
  if (findCompiler(context.searchPath) !== undefined) return vitestSuite("agent", QUICK_TIMEOUT_MS);
  return { name: "agent", on: "this machine", skippedBecause: "No C compiler and make here." };
}

function planPython(): Planned {
  const missing = whyNoPython();
  if (missing === undefined) return quick("python");
  return { name: "python", on: "this machine", skippedBecause: missing };
}

function planExtensions(): Planned {
  const missing = whyNoServices();
  if (missing === undefined) return inOwnNetwork(vitestSuite("extensions", QUICK_TIMEOUT_MS));
  return { name: "extensions", on: "Docker and sshd", skippedBecause: missing };
}

async function runPlanned(planned: Planned): Promise<void> {
  // Unit tests start no processes.
  if (planned.name !== "unit") await command;
  const alone = selected.length === 1 && planned.name !== "gvisor";
  const result =
    "skippedBecause" in planned ? skipped(planned) : await runSuite(planned, alone ? "as it comes" : "at the end");
  const empty =
    "skippedBecause" in planned || result.passed + result.failed > 0 ? undefined : "All of its tests were skipped.";
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
