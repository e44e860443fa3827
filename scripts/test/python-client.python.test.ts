import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { withHostInterpreters } from "../../test/kit/server/host-interpreters.ts";
import { startTestServer } from "../../test/kit/server/test-server.ts";
import { pythonEnvironment, whyNoPython } from "../../test/kit/services/python-environment.ts";
import { temporaryFolder } from "../../test/kit/temporary-folder.ts";

const CLIENT = join(import.meta.dirname, "../../clients/python");
const { python, wheels } = pythonEnvironment;

/** For a busy machine: alone it takes ten seconds. */
const BUSY_MS = 10 * 60_000;

const missing = whyNoPython();
if (missing !== undefined) console.warn(`The tests of the Python SDK are skipped: ${missing}`);

/** Runs Python in the folder of the SDK; gives what it printed, and fails with it. */
async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  const variables = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...env };
  const options = { cwd: CLIENT, env: variables, maxBuffer: 64 << 20, timeout: BUSY_MS - 5_000 };
  try {
    return (await promisify(execFile)(python, args, options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${args.join(" ")} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

describe.skipIf(missing !== undefined)("the Python SDK", () => {
  test(
    "passes its tests against two servers with one store",
    async () => {
      const store = await temporaryFolder();
      const first = await startTestServer({ store, wrapBackend: withHostInterpreters });
      const second = await startTestServer({ store, wrapBackend: withHostInterpreters });
      const said = await run(["-m", "pytest", "-q", "--durations=5"], {
        SANDBOXER_TEST_URLS: `${first.httpUrl},${second.httpUrl}`,
      });
      expect(said).toMatch(/\d{2,} passed/);
      expect(said).not.toMatch(/skipped|warning/);
    },
    BUSY_MS,
  );

  test("is typed", async () => {
    expect(await run(["-m", "mypy", "--cache-dir", join(wheels, "../mypy-cache")])).toContain("no issues found");
  });

  test("is formatted as ruff requires", async () => {
    expect(await run(["-m", "ruff", "check", "--no-cache", "."])).toContain("All checks passed");
    expect(await run(["-m", "ruff", "format", "--no-cache", "--check", "."])).toContain("already formatted");
  });

  test("is a wheel that installs into an empty environment", async () => {
    const folder = await temporaryFolder();
    await run(["-m", "hatchling", "build", "--target", "wheel", "--directory", folder]);
    const [wheel = ""] = globSync("sandboxer-*.whl", { cwd: folder });
    const empty = join(folder, "empty");
    await run(["-m", "venv", "--without-pip", empty]);
    const emptyPython = join(empty, "bin/python");
    const pip = ["-m", "pip", "--quiet", "--disable-pip-version-check", "--python", emptyPython];
    await run([...pip, "install", "--no-index", "--find-links", wheels, join(folder, wheel)]);
    const program = [
      "import importlib.resources, sandboxer, sandboxer.testing",
      'assert importlib.resources.files("sandboxer").joinpath("py.typed").is_file()',
      "print(sandboxer.__version__, sandboxer.AsyncSandbox.__module__)",
    ].join("\n");
    const { stdout } = await promisify(execFile)(emptyPython, ["-I", "-c", program]);
    expect(wheel).toContain(stdout.split(" ")[0]);
  });
});
