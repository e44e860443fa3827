import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../test/kit/server/server-process.ts";
import { pythonEnvironment, whyNoPython } from "../../test/kit/services/python-environment.ts";
import { temporaryFolder } from "../../test/kit/temporary-folder.ts";

const CLIENT = join(import.meta.dirname, "../../clients/python");

const missing = whyNoEngine() ?? whyNoPython();
if (missing !== undefined) console.warn(`The tests of the Python SDK on gVisor are skipped: ${missing}`);

describe.skipIf(missing !== undefined)("the Python SDK on gVisor", () => {
  test("passes its tests with real programs", async () => {
    const store = await temporaryFolder();
    const servers = [await ServerProcess.start({ store }), await ServerProcess.start({ store })];
    const urls = servers.map(({ url }) => url.replace("ws", "http"));
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", SANDBOXER_TEST_URLS: urls.join(",") };
    const args = ["-m", "pytest", "-q", "--durations=5", "real"];
    const { stdout } = await promisify(execFile)(pythonEnvironment.python, args, { cwd: CLIENT, env }).catch(
      (error: unknown) => {
        const { stdout: said = "", stderr = "" } = error as { stdout?: string; stderr?: string };
        throw new Error(`pytest failed:\n${said}${stderr}`, { cause: error });
      },
    );
    expect(stdout).toMatch(/\d+ passed/);
  });
});
