import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../test/kit/server/server-process.ts";
import { adapterEnvironment, whyNoPython } from "../../test/kit/services/python-environment.ts";
import { temporaryFolder } from "../../test/kit/temporary-folder.ts";

const CLIENT = join(import.meta.dirname, "../../clients/python");

/** For a busy machine: alone it takes a minute or two. */
const BUSY_MS = 20 * 60_000;

const missing = whyNoEngine() ?? whyNoPython(adapterEnvironment);
if (missing !== undefined) console.warn(`The tests of the adapters for agent frameworks are skipped: ${missing}`);

/** Runs Python in the folder of the SDK; gives what it printed, and fails with it. */
async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  const variables = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", LANGSMITH_TRACING: "false", ...env };
  const options = { cwd: CLIENT, env: variables, maxBuffer: 64 << 20 };
  try {
    return (await promisify(execFile)(adapterEnvironment.python, args, options)).stdout;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${args.join(" ")} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

describe.skipIf(missing !== undefined)("the adapters for agent frameworks on gVisor", () => {
  test("pass LangChain's tests and their own", { timeout: BUSY_MS }, async () => {
    const { url } = await ServerProcess.start({ store: await temporaryFolder() });
    const said = await run(["-m", "pytest", "-q", "--durations=5", "-o", "asyncio_mode=auto", "adapters"], {
      SANDBOXER_TEST_URLS: url.replace("ws", "http"),
    });
    expect(said).toMatch(/\b1\d\d passed/);
    expect(said).not.toContain("failed");
  });

  test("are typed", { timeout: BUSY_MS }, async () => {
    const modules = ["langchain", "openai_agents"].flatMap((name) => ["-m", `sandboxer.${name}`]);
    const cache = join(adapterEnvironment.folder, "mypy-cache");
    expect(await run(["-m", "mypy", "--cache-dir", cache, ...modules])).toContain("no issues found");
  });
});
