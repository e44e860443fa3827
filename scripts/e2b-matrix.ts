/**
 * `npm run test:matrix`: several versions of E2B's unmodified packages against a server of this clone on gVisor, by
 * environment variables alone, and the log of it in docs/reference/e2b-matrix.md. Needs root, runsc, the registries of
 * npm and PyPI, and Python 3.10 or newer. Ends with 1 when a step failed. `--js 2.45.0,2.50.0` and `--python 2.63.0`
 * choose other versions, `--js none` leaves one language out, and `--keep-log` leaves the page as it is.
 */
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { makeBashImage } from "../test/kit/services/bash-image.ts";
import { COMMAND } from "../test/kit/server/command.ts";
import { listeningUrl } from "../test/kit/server/listening-url.ts";
import { runScenario, type Scenario, type ScenarioLine } from "./e2b-matrix/run-scenario.ts";

const ROOT = join(import.meta.dirname, "..");
const INSTALLED = join(ROOT, "build/e2b-matrix");
const PAGE = join(ROOT, "docs/reference/e2b-matrix.md");
const START_MS = 120_000;

interface Run {
  /** As a column of the page shows it. */
  readonly name: string;
  readonly lines: readonly ScenarioLine[];
}

const { values } = parseArgs({
  options: {
    js: { type: "string", default: "2.45.0,2.50.0,latest" },
    python: { type: "string", default: "latest" },
    "keep-log": { type: "boolean", default: false },
  },
});

const folder = await mkdtemp(join(tmpdir(), "e2b-matrix-"));
const server = spawn(
  process.execPath,
  [COMMAND, "serve", "--json", "--port", "0", "--store", join(folder, "store"), "--log-level", "warn"],
  { env: { ...process.env, XDG_DATA_HOME: join(folder, "data") }, stdio: ["ignore", "pipe", "pipe"] },
);
const log: string[] = [];
createInterface(server.stderr).on("line", (line) => log.push(line));
try {
  const url = await listeningUrl(server, START_MS, () => log.join("\n"));
  const env = { SCENARIO_IMAGE: await makeBashImage(join(folder, "data/sandboxer/images/bash")) };
  const runs = [...(await runJs({ url, env })), ...(await runPython({ url, env }))];
  const unknown = log.filter((line) => line.includes("of E2B"));
  for (const line of unknown) console.log(line);
  const commit = await output("git", ["-C", ROOT, "rev-parse", "--short", "HEAD"]);
  if (!values["keep-log"]) await writeFile(PAGE, pageOf(runs, commit));
  const failed = runs.flatMap(({ name, lines }) =>
    lines.filter(({ result }) => result === "failed").map(({ step, message }) => `${name}: ${step}: ${message}`),
  );
  for (const line of failed) console.error(line);
  process.exitCode = failed.length === 0 ? 0 : 1;
} finally {
  const ended = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  await ended;
  await rm(folder, { recursive: true, force: true });
}

type Place = Pick<Scenario, "url" | "env">;

async function runJs(place: Place): Promise<Run[]> {
  const runs: Run[] = [];
  for (const asked of versions(values.js)) {
    const version = asked === "latest" ? await output("npm", ["view", "e2b", "version"]) : asked;
    const prefix = join(INSTALLED, `js-${version}`);
    await mkdir(prefix, { recursive: true });
    await writeFile(join(prefix, "package.json"), JSON.stringify({ private: true }));
    // The interpreter's package has its own version of e2b, which must be this one.
    const packages = [`e2b@${version}`, ...(asked === "latest" ? ["@e2b/code-interpreter@latest"] : [])];
    await output("npm", ["install", "--prefix", prefix, "--no-save", "--no-audit", "--no-fund", ...packages]);
    runs.push(
      await run(`npm ${version}`, { ...place, program: process.execPath, arguments: ["scenario.mjs", prefix] }),
    );
  }
  return runs;
}

async function runPython(place: Place): Promise<Run[]> {
  const runs: Run[] = [];
  for (const asked of versions(values.python)) {
    const prefix = join(INSTALLED, `python-${asked}`);
    const python = join(prefix, "bin/python");
    await output("python3", ["-m", "venv", prefix]);
    const wanted = asked === "latest" ? ["e2b", "e2b-code-interpreter"] : [`e2b==${asked}`];
    await output(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", ...wanted]);
    const show = "import importlib.metadata as m; print(m.version('e2b'))";
    const version = await output(python, ["-c", show]);
    for (const flavour of ["sync", "async"]) {
      const name = `PyPI ${version} ${flavour}`;
      runs.push(await run(name, { ...place, program: python, arguments: ["scenario.py", flavour] }));
    }
  }
  return runs;
}

function versions(text: string): string[] {
  return text === "none" ? [] : text.split(",");
}

async function run(name: string, scenario: Scenario): Promise<Run> {
  console.log(name);
  const lines = await runScenario(scenario, ({ step, result, message }) =>
    console.log(`  ${result.padEnd(8)}${step}${message === undefined ? "" : `: ${message}`}`),
  );
  return { name, lines };
}

async function output(program: string, given: readonly string[]): Promise<string> {
  const child = spawn(program, given, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  if (code !== 0) throw new Error(`${program} ${given.join(" ")} ended with ${code}.`);
  return text.trim();
}

function pageOf(runs: readonly Run[], commit: string): string {
  const steps = [...new Set(runs.flatMap(({ lines }) => lines.map(({ step }) => step)))];
  const cell = ({ lines }: Run, wanted: string): string => {
    const { result = "missing" } = lines.find(({ step }) => step === wanted) ?? {};
    return result === "missing" ? "–" : result;
  };
  const rows = steps.map((step) => `| ${[step, ...runs.map((each) => cell(each, step))].join(" | ")} |`);
  return [
    "# Tested E2B packages",
    "",
    "This page is the log of the last `npm run test:matrix`: E2B's published packages, unmodified, against a server on gVisor. `–` is a call that the package does not have, or that the scenario leaves out.",
    "",
    `Run on ${new Date().toISOString().slice(0, 10)}, at commit ${commit}. \`npm test\` runs the same calls with the newest packages.`,
    "",
    `| | ${runs.map(({ name }) => name).join(" | ")} |`,
    `|---|${runs.map(() => "---").join("|")}|`,
    ...rows,
    "",
  ].join("\n");
}
