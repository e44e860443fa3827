/**
 * `npm run test:matrix`: several versions of E2B's unmodified packages against a server of this clone on gVisor, by
 * environment variables alone, and the log of it in docs/reference/e2b-matrix.md. The newest ones run twice, the second
 * time with `E2B_DOMAIN` alone behind Caddy. Needs root, runsc, the registries of npm and PyPI, and Python 3.10 or newer.
 * Ends with 1 when a step failed. `--js 2.45.0,2.50.0` and `--python 2.63.0` choose other versions, `--js none` leaves
 * one language out, and `--keep-log` leaves the page as it is.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { makeBashImage } from "../test/kit/services/bash-image.ts";
import { COMMAND } from "../test/kit/server/command.ts";
import { listeningUrl } from "../test/kit/server/listening-url.ts";
import { prepareDeployPrograms } from "../test/kit/services/deploy-programs.ts";
import { openTestDomain, whyNoTestDomain } from "../test/kit/services/test-domain.ts";
import { runScenario, SCENARIO_KEY, type Scenario, type ScenarioLine } from "./e2b-matrix/run-scenario.ts";
import { newestEngineFlags } from "./testing/engines.ts";

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
const log: string[] = [];
const ends: (() => Promise<void>)[] = [];
const report = (line: string): void => console.log(line);
try {
  await prepareDeployPrograms(report);
  const engine = await newestEngineFlags();
  const noDomain = whyNoTestDomain();
  if (engine === undefined || noDomain !== undefined) throw new Error(noDomain ?? "There is no engine.");
  const domain = await openTestDomain(folder);
  ends.push(() => domain.close());
  const behind = ["--preview-domain", `https://${domain.domain}`, "--trusted-proxy", "127.0.0.1"];
  const plain = await serve("plain", engine);
  const keyed = await serve("keyed", [...engine, ...behind], { SANDBOXER_API_KEYS: SCENARIO_KEY });
  await domain.passTo(keyed.url);
  const places = [
    { at: plain.url, env: plain.scenario },
    { at: domain, env: keyed.scenario },
  ] as const;
  const runs = [...(await runJs(places)), ...(await runPython(places))];
  for (const line of log.filter((each) => each.includes("of E2B"))) console.log(line);
  const commit = await output("git", ["-C", ROOT, "rev-parse", "--short", "HEAD"]);
  if (!values["keep-log"]) await writeFile(PAGE, pageOf(runs, commit));
  const failed = runs.flatMap(({ name, lines }) =>
    lines.filter(({ result }) => result === "failed").map(({ step, message }) => `${name}: ${step}: ${message}`),
  );
  for (const line of failed) console.error(line);
  process.exitCode = failed.length === 0 ? 0 : 1;
} finally {
  for (const end of ends.toReversed()) await end();
  await rm(folder, { recursive: true, force: true });
}

interface Served {
  readonly url: string;
  /** For scenarios: an image that this server may use. */
  readonly scenario: { readonly SCENARIO_IMAGE: string };
}

async function serve(name: string, flags: readonly string[], env: Record<string, string> = {}): Promise<Served> {
  const data = join(folder, name);
  const argv = ["serve", "--json", "--port", "0", "--store", join(data, "store"), "--log-level", "warn", ...flags];
  const server = spawn(process.execPath, [COMMAND, ...argv], {
    env: { ...process.env, XDG_DATA_HOME: data, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  createInterface(server.stderr).on("line", (line) => log.push(line));
  const ended = once(server, "exit");
  ends.push(async () => {
    server.kill("SIGTERM");
    await ended;
  });
  const url = await listeningUrl(server, START_MS, () => log.join("\n"));
  return { url, scenario: { SCENARIO_IMAGE: await makeBashImage(join(data, "sandboxer/images/bash")) } };
}

type Place = Pick<Scenario, "at" | "env">;

/** At both places with the newest version, otherwise at the first one. */
async function runAt(
  places: readonly Place[],
  newest: boolean,
  name: string,
  scenario: Pick<Scenario, "program" | "arguments">,
): Promise<Run[]> {
  const runs: Run[] = [];
  for (const place of newest ? places : places.slice(0, 1)) {
    const suffix = typeof place.at === "string" ? "" : ", E2B_DOMAIN";
    runs.push(await run(name + suffix, { ...place, ...scenario }));
  }
  return runs;
}

async function runJs(places: readonly Place[]): Promise<Run[]> {
  const runs: Run[] = [];
  for (const asked of versions(values.js)) {
    const version = asked === "latest" ? await output("npm", ["view", "e2b", "version"]) : asked;
    const prefix = join(INSTALLED, `js-${version}`);
    await mkdir(prefix, { recursive: true });
    await writeFile(join(prefix, "package.json"), JSON.stringify({ private: true }));
    // The interpreter's package has its own version of e2b, which must be this one.
    const packages = [`e2b@${version}`, ...(asked === "latest" ? ["@e2b/code-interpreter@latest"] : [])];
    await output("npm", ["install", "--prefix", prefix, "--no-save", "--no-audit", "--no-fund", ...packages]);
    const interpreter = asked === "latest" ? ` and ${await installedInterpreter(prefix)}` : "";
    const scenario = { program: process.execPath, arguments: ["scenario.mjs", prefix] } as const;
    runs.push(...(await runAt(places, asked === "latest", `npm ${version}${interpreter}`, scenario)));
  }
  return runs;
}

async function installedInterpreter(prefix: string): Promise<string> {
  const path = join(prefix, "node_modules/@e2b/code-interpreter/package.json");
  return (JSON.parse(await readFile(path, "utf8")) as { version: string }).version;
}

async function runPython(places: readonly Place[]): Promise<Run[]> {
  const runs: Run[] = [];
  for (const asked of versions(values.python)) {
    const prefix = join(INSTALLED, `python-${asked}`);
    const python = join(prefix, "bin/python");
    await output("python3", ["-m", "venv", prefix]);
    const wanted = asked === "latest" ? ["e2b", "e2b-code-interpreter"] : [`e2b==${asked}`];
    await output(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", ...wanted]);
    const show = `import importlib.metadata as m; print(*map(m.version, ${JSON.stringify(wanted.map((name) => name.split("==")[0]))}), sep=" and ")`;
    const version = await output(python, ["-c", show]);
    for (const flavour of ["sync", "async"]) {
      const scenario = { program: python, arguments: ["scenario.py", flavour] } as const;
      runs.push(...(await runAt(places, asked === "latest", `PyPI ${version} ${flavour}`, scenario)));
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
    `Run on ${new Date().toISOString().slice(0, 10)}, at commit ${commit}. \`npm test\` runs the same calls with the newest packages. A second version is that of the code-interpreter package. \`E2B_DOMAIN\` is with that variable alone, behind Caddy with TLS and a wildcard name.`,
    "",
    `| | ${runs.map(({ name }) => name).join(" | ")} |`,
    `|---|${runs.map(() => "---").join("|")}|`,
    ...rows,
    "",
  ].join("\n");
}
