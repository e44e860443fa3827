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
import { COMMAND } from "../test/kit/server/command.ts";
import { listeningUrl } from "../test/kit/server/listening-url.ts";

const ROOT = join(import.meta.dirname, "..");
const INSTALLED = join(ROOT, "build/e2b-matrix");
const PAGE = join(ROOT, "docs/reference/e2b-matrix.md");
const START_MS = 120_000;
const SCENARIO_MS = 15 * 60_000;

interface Line {
  readonly step: string;
  readonly result: "ok" | "missing" | "failed";
  readonly message?: string;
}

interface Run {
  /** As a column of the page shows it. */
  readonly name: string;
  readonly lines: readonly Line[];
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
  const runs = [...(await runJs(url)), ...(await runPython(url))];
  const unknown = log.filter((line) => line.includes("of E2B"));
  for (const line of unknown) console.log(line);
  if (!values["keep-log"]) await writeFile(PAGE, pageOf(runs));
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

async function runJs(url: string): Promise<Run[]> {
  const runs: Run[] = [];
  for (const asked of versions(values.js)) {
    const version = asked === "latest" ? await output("npm", ["view", "e2b", "version"]) : asked;
    const prefix = join(INSTALLED, `js-${version}`);
    await mkdir(prefix, { recursive: true });
    await writeFile(join(prefix, "package.json"), JSON.stringify({ private: true }));
    await output("npm", ["install", "--prefix", prefix, "--no-save", "--no-audit", "--no-fund", `e2b@${version}`]);
    const scenario = join(import.meta.dirname, "e2b-matrix/scenario.mjs");
    runs.push(await run(`npm ${version}`, process.execPath, [scenario, prefix], url));
  }
  return runs;
}

async function runPython(url: string): Promise<Run[]> {
  const runs: Run[] = [];
  for (const asked of versions(values.python)) {
    const prefix = join(INSTALLED, `python-${asked}`);
    const python = join(prefix, "bin/python");
    await output("python3", ["-m", "venv", prefix]);
    const wanted = asked === "latest" ? "e2b" : `e2b==${asked}`;
    await output(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", wanted]);
    const show = "import importlib.metadata as m; print(m.version('e2b'))";
    const version = await output(python, ["-c", show]);
    const scenario = join(import.meta.dirname, "e2b-matrix/scenario.py");
    for (const flavour of ["sync", "async"]) {
      runs.push(await run(`PyPI ${version} ${flavour}`, python, [scenario, flavour], url));
    }
  }
  return runs;
}

function versions(text: string): string[] {
  return text === "none" ? [] : text.split(",");
}

/** Runs a scenario with the environment that a user would set. */
async function run(name: string, program: string, given: readonly string[], url: string): Promise<Run> {
  console.log(name);
  // Older packages only take keys of this form; a server without keys takes any.
  const env = { ...process.env, E2B_API_URL: `${url}/e2b`, E2B_SANDBOX_URL: `${url}/e2b`, E2B_API_KEY: "e2b_00ff" };
  const child = spawn(program, given, { env, stdio: ["ignore", "pipe", "inherit"], timeout: SCENARIO_MS });
  const lines: Line[] = [];
  createInterface(child.stdout).on("line", (text) => {
    const line = JSON.parse(text) as Line;
    lines.push(line);
    console.log(`  ${line.result.padEnd(8)}${line.step}${line.message === undefined ? "" : `: ${line.message}`}`);
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  if (code !== 0) lines.push({ step: "the program itself", result: "failed", message: `it ended with ${code}` });
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

function pageOf(runs: readonly Run[]): string {
  const steps = [...new Set(runs.flatMap(({ lines }) => lines.map(({ step }) => step)))];
  const cell = ({ lines }: Run, wanted: string): string => {
    const { result = "missing" } = lines.find(({ step }) => step === wanted) ?? {};
    return result === "missing" ? "–" : result;
  };
  const rows = steps.map((step) => `| ${[step, ...runs.map((each) => cell(each, step))].join(" | ")} |`);
  return [
    "# E2B's packages that were tried",
    "",
    "This page is the log of the last `npm run test:matrix`: E2B's published packages, unmodified, against a server on gVisor. `–` is a call that the package does not have, or that the scenario leaves out.",
    "",
    `Run on ${new Date().toISOString().slice(0, 10)}.`,
    "",
    `| | ${runs.map(({ name }) => name).join(" | ")} |`,
    `|---|${runs.map(() => "---").join("|")}|`,
    ...rows,
    "",
  ].join("\n");
}
