/**
 * `npm run test:langchain`: LangChain's public tests of sandboxes (`langchain-tests`) through `langchain-e2b` and E2B's
 * Python client, all unmodified, against this server on gVisor. Installs them once into a virtual environment below
 * `~/.cache/sandboxer`. `--log` adds the outcome to docs/reference/langchain.md. Further arguments go to pytest.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { listeningUrl } from "../test/kit/server/listening-url.ts";
import { newestEngineFlags } from "./testing/engines.ts";

const VERSIONS = { "langchain-e2b": "0.0.6", "langchain-tests": "1.1.9", deepagents: "0.6.12", e2b: "2.63.0" };
const TOOLS = ["pytest==9.2.0", "pytest-asyncio==1.4.1.post1"];
const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PAGE = join(ROOT, "docs/reference/langchain.md");
const START_MS = 120_000;

const passed = process.argv.slice(2).filter((argument) => argument !== "--log");
const engine = await newestEngineFlags();
if (engine === undefined) process.exit(1);
const environment = installed();
const folder = await mkdtemp(join(tmpdir(), "sandboxer-langchain-"));
const server = spawn(
  process.execPath,
  [join(ROOT, "packages/cli/bin/sandboxer.mjs"), "serve", "--json", "--port", "0", ...engine],
  { env: { ...process.env, XDG_DATA_HOME: folder }, stdio: ["ignore", "pipe", "ignore"] },
);
try {
  const url = `${await listeningUrl(server, START_MS, () => "see the server's log")}/e2b`;
  const started = performance.now();
  const { code, summary } = await runTests(url);
  process.exitCode = code;
  if (process.argv.includes("--log")) await log(summary, performance.now() - started);
} finally {
  server.kill("SIGTERM");
  await once(server, "exit");
  await rm(folder, { recursive: true, force: true });
}

/** The folder of the virtual environment. */
function installed(): string {
  const target = join(homedir(), ".cache/sandboxer/langchain-tests");
  const wanted = [...Object.entries(VERSIONS).map(([name, version]) => `${name}==${version}`), ...TOOLS];
  const run = (program: string, ...parameters: string[]): void => {
    const { status } = spawnSync(program, parameters, { stdio: ["ignore", "inherit", "inherit"] });
    if (status !== 0) throw new Error(`${program} failed; Python 3.11 or newer with venv and pip is needed.`);
  };
  if (!existsSync(join(target, "bin/pip"))) run("python3", "-m", "venv", target);
  run(join(target, "bin/pip"), "install", "--quiet", ...wanted);
  return target;
}

async function runTests(url: string): Promise<{ code: number; summary: string }> {
  const tests = spawn(
    join(environment, "bin/pytest"),
    ["-q", "-o", "asyncio_mode=auto", "-W", "ignore", "-p", "no:cacheprovider", "test_sandbox.py", ...passed],
    {
      cwd: join(ROOT, "test/langchain"),
      env: { ...process.env, E2B_API_URL: url, E2B_SANDBOX_URL: url, E2B_API_KEY: "any", PYTHONDONTWRITEBYTECODE: "1" },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let last = "";
  tests.stdout.setEncoding("utf8").on("data", (text: string) => {
    process.stdout.write(text);
    last = (last + text).slice(-2000);
  });
  const [code] = (await once(tests, "close")) as [number | null];
  return { code: code ?? 1, summary: /(\d+ (?:passed|failed)[^\n]*?) in /.exec(last)?.[1] ?? "no result" };
}

async function log(summary: string, ms: number): Promise<void> {
  const versions = Object.entries(VERSIONS).map((pair) => pair.join(" "));
  const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: ROOT, encoding: "utf8" }).stdout.trim();
  const row = [
    new Date().toISOString().slice(0, 10),
    commit,
    versions.join(", "),
    summary,
    `${Math.round(ms / 1000)} s`,
  ];
  await writeFile(PAGE, `${(await readFile(PAGE, "utf8")).trimEnd()}\n| ${row.join(" | ")} |\n`);
}
