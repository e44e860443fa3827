/**
 * Virtual environments for the tests of the Python SDK and of its adapters, kept in the cache: `node
 * test/kit/services/python-environment.ts` makes them, which takes minutes and needs the package index. Existing ones
 * are left alone.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { findProgram } from "../../../packages/server/src/setup/files.ts";
import { acquireFileLock } from "../../../packages/server/src/support/file-lock.ts";
import { withProgress } from "../progress.ts";
import { runProgram } from "../store-servers/run-program.ts";
import { SERVERS_FOLDER } from "../store-servers/test-server.ts";

const LIMIT_MS = 15 * 60_000;
const CHECK = "import sys, venv; assert sys.version_info >= (3, 10)";

interface PythonEnvironment {
  readonly folder: string;
  readonly requirements: string;
  readonly python: string;
  /** The packages that the SDK depends on, for an installation without the network. */
  readonly wheels: string;
  /** Written when it is complete. */
  readonly ready: string;
}

export const pythonEnvironment = environmentOf("requirements.txt");
/** The agent frameworks need other versions of the SDK's dependencies, and Python 3.11. */
export const adapterEnvironment = environmentOf("requirements-adapters.txt");
/** Large libraries of notebooks. */
export const notebookEnvironment = environmentOf("requirements-notebook.txt");

const ENVIRONMENTS = [pythonEnvironment, adapterEnvironment, notebookEnvironment];

/** Undefined when the tests can run. */
export function whyNoPython(environment = pythonEnvironment): string | undefined {
  if (existsSync(environment.ready)) return undefined;
  const packages = basename(environment.requirements);
  return `There is no environment with the packages of ${packages}. Run: node test/kit/services/python-environment.ts`;
}

/** Other versions make another environment. */
function environmentOf(name: string): PythonEnvironment {
  const requirements = fileURLToPath(new URL(`../../../clients/python/${name}`, import.meta.url));
  const hash = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 12);
  const folder = join(SERVERS_FOLDER, `python-${hash}`);
  const inside = (...path: string[]): string => join(folder, ...path);
  return { folder, requirements, python: inside("bin", "python"), wheels: inside("wheels"), ready: inside("ready") };
}

/** One run of tests at a time makes it; another one waits, and uses it too. */
export async function preparePython(report: (line: string) => void): Promise<void> {
  const missing = ENVIRONMENTS.filter((each) => whyNoPython(each) !== undefined);
  if (missing.length === 0) return;
  const onWait = (): void => report("set-up: waiting for another run of tests, which prepares Python");
  const lock = await acquireFileLock(join(SERVERS_FOLDER, "python.lock"), { waitMs: 2 * LIMIT_MS, onWait });
  try {
    await withProgress(report, "preparing Python for the tests of the Python SDK", async () => {
      for (const each of missing) if (whyNoPython(each) !== undefined) await make(each);
    });
  } catch (error) {
    report(`set-up: failed: Python: ${(error as Error).message.split("\n").at(-1)}`);
  } finally {
    await lock?.release();
  }
}

async function make({ folder, requirements, python, wheels, ready }: PythonEnvironment): Promise<void> {
  const signal = AbortSignal.timeout(LIMIT_MS);
  // Leftovers of an interrupted run.
  await rm(folder, { recursive: true, force: true });
  await installPython(signal);
  await runProgram(["python3", "-m", "venv", folder], { signal });
  const pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"] as const;
  await runProgram([...pip, "install", "--no-compile", "--requirement", requirements], { signal });
  await runProgram([...pip, "download", "--dest", wheels, "--constraint", requirements, "httpx", "websockets"], {
    signal,
  });
  await writeFile(ready, "");
}

/** As root on Debian, Python and its module for environments are installed when they are missing. */
async function installPython(signal: AbortSignal): Promise<void> {
  try {
    await runProgram(["python3", "-c", `${CHECK}; import ensurepip`], { signal });
  } catch (error) {
    const apt = findProgram("apt-get", process.env["PATH"] ?? "");
    if (apt === undefined || process.getuid?.() !== 0) throw error;
    const install = [apt, "install", "--yes", "--no-install-recommends", "python3", "python3-venv"] as const;
    await runProgram([apt, "-qq", "update"], { signal });
    await runProgram([...install], { signal, env: { DEBIAN_FRONTEND: "noninteractive" } });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await preparePython((line) => process.stdout.write(`${line}\n`));
  const missing = ENVIRONMENTS.map((each) => whyNoPython(each)).find((each) => each !== undefined);
  process.stdout.write(`${missing ?? pythonEnvironment.python}\n`);
  process.exitCode = missing === undefined ? 0 : 1;
}
