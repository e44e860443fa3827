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
/** How much runs at once, by weight. With more, tests with short leases wait too long. */
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

const extensions = (async () => (await services, await python, [planExtensions()]))();
const browsers = (async () => (
  await browser,
  wanted("console") ? [await planConsoleSuite(await engines, pictures)] : []
))();
/** Short suites leave the room to long ones, which can start after seconds; on a fresh machine that takes minutes. */
const longOnes = Promise.race([Promise.all([engines, extensions, browsers]), delay(60_000, undefined, { ref: false })]);

type Plan = () => Promise<readonly Planned[]>;

/**
 * By rank: the longest come first. A weight says how busy a lane keeps the processors. The first two lanes could fill
 * them alone. The others wait for most of their time, so they run one after the other beside those: together at the end,
 * they would leave the processors idle.
 */
const lanes: readonly [weight: number, ...plans: readonly Plan[]][] = [
  [2, async () => [quick("unit"), quick("servers")]],
  [2, async () => (await engines).slice(1)],
  // Two private Docker engines on one machine were seen to interfere with each other: one follows the other.
  [1, async () => await extensions, async () => (wanted("docker") ? [await planDockerSuite(await engines)] : [])],
  [1, async () => await browsers],
  [1, async () => (await stores, wanted("chaos") ? planChaosSuites(await engines) : [])],
  [1, async () => (await longOnes, [quick("crash")])],
  [1, async () => (await stores, await longOnes, [quick("stores")])],
  [1, async () => (await longOnes, (await engines).slice(0, 1))],
  [1, async () => (await longOnes, STATIC_SUITES)],
  [1, async () => (await longOnes, [planAgent()])],
  [1, async () => (await longOnes, [simulation(1_000)])],
  [1, async () => (await python, await longOnes, [planPython()])],
];
// Each running suite listens for the end of this process.
process.setMaxListeners(lanes.length + 10);
await Promise.all(
  lanes.map(async ([weight, first, ...later], rank) => {
    const planned = selectedOf(await first?.());
    await room.use(rank, planned.length + later.length === 0 ? 0 : weight, async () => {
      for (const each of planned) await runPlanned(each);
      for (const plan of later) for (const each of selectedOf(await plan())) await runPlanned(each);
    });
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

function selectedOf(planned: readonly Planned[] = []): readonly Planned[] {
  return planned.filter(({ name }) => wanted(name));
}

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
  return { name: "agent", on: "this machine", skippedBecause: "There is no C compiler, or no make." };
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
