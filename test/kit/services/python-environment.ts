/**
 * A virtual environment for the tests of the Python SDK, kept in the cache: `node test/kit/services/python-environment.ts`
 * makes it, which takes a minute and needs the package index. What is there is left alone.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { findProgram } from "../../../packages/server/src/setup/files.ts";
import { acquireFileLock } from "../../../packages/server/src/support/file-lock.ts";
import { withProgress } from "../progress.ts";
import { runProgram } from "../store-servers/run-program.ts";
import { SERVERS_FOLDER } from "../store-servers/test-server.ts";

const LIMIT_MS = 15 * 60_000;
const REQUIREMENTS = fileURLToPath(new URL("../../../clients/python/requirements.txt", import.meta.url));
/** Other versions make another environment. */
const HASH = createHash("sha256").update(readFileSync(REQUIREMENTS)).digest("hex").slice(0, 12);
const FOLDER = join(SERVERS_FOLDER, `python-${HASH}`);
const READY = join(FOLDER, "ready");
const CHECK = "import sys, venv; assert sys.version_info >= (3, 10)";

export const pythonEnvironment = {
  python: join(FOLDER, "bin", "python"),
  /** The packages that the SDK depends on, for an installation without the network. */
  wheels: join(FOLDER, "wheels"),
};

/** Undefined when the tests can run. */
export function whyNoPython(): string | undefined {
  if (existsSync(READY)) return undefined;
  return "There is no environment with Python 3.10 or newer. Run: node test/kit/services/python-environment.ts";
}

/** One run of tests at a time makes it; another one waits, and uses it too. */
export async function preparePython(report: (line: string) => void): Promise<void> {
  if (whyNoPython() === undefined) return;
  const onWait = (): void => report("set-up: waiting for another run of tests, which prepares Python");
  const lock = await acquireFileLock(join(SERVERS_FOLDER, "python.lock"), { waitMs: 2 * LIMIT_MS, onWait });
  try {
    if (whyNoPython() === undefined) return;
    await withProgress(report, "preparing Python for the tests of the Python SDK", () => make());
  } catch (error) {
    report(`set-up: failed: Python: ${(error as Error).message.split("\n").at(-1)}`);
  } finally {
    await lock?.release();
  }
}

async function make(): Promise<void> {
  const signal = AbortSignal.timeout(LIMIT_MS);
  // What an interrupted run left.
  await rm(FOLDER, { recursive: true, force: true });
  await installPython(signal);
  const { python, wheels } = pythonEnvironment;
  await runProgram(["python3", "-m", "venv", FOLDER], { signal });
  const pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"] as const;
  await runProgram([...pip, "install", "--requirement", REQUIREMENTS], { signal });
  await runProgram([...pip, "download", "--dest", wheels, "--constraint", REQUIREMENTS, "httpx", "websockets"], {
    signal,
  });
  await writeFile(READY, "");
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
  const missing = whyNoPython();
  process.stdout.write(`${missing ?? pythonEnvironment.python}\n`);
  process.exitCode = missing === undefined ? 0 : 1;
}
