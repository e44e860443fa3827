import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { runScenario, type Scenario, type ScenarioLine } from "../../../../../scripts/e2b-matrix/run-scenario.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { makeBashImage } from "../../../../../test/kit/services/bash-image.ts";
import { pythonEnvironment, whyNoPython } from "../../../../../test/kit/services/python-environment.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const REPOSITORY = fileURLToPath(new URL("../../../../../", import.meta.url));
/** For a machine that has other things to do: alone it takes half a minute. */
const BUSY_MS = 10 * 60_000;

const missing = whyNoEngine();
const missingPython = missing ?? whyNoPython();
if (missingPython !== undefined) console.warn(`Tests of E2B's packages on gVisor are skipped: ${missingPython}`);

/** Makes every step of the matrix with the newest packages, unmodified, and returns those that failed. */
async function failuresOf(scenario: Pick<Scenario, "program" | "arguments">): Promise<readonly ScenarioLine[]> {
  const server = await ServerProcess.start({ store: await temporaryFolder() });
  const at = server.url.replace(/^ws/, "http");
  const env = { SCENARIO_IMAGE: await makeBashImage(join(server.dataHome, "sandboxer/images/bash")) };
  const lines = await runScenario({ ...scenario, at, env });
  expect(lines.length).toBeGreaterThan(20);
  // Fields that are not supported are refused, and the scenario tries one.
  expect(server.log).not.toContain("unknown route of E2B");
  return lines.filter(({ result }) => result !== "ok");
}

describe.skipIf(missing !== undefined)("E2B's newest npm packages on gVisor", () => {
  test("every call of the matrix works", { timeout: BUSY_MS }, async () => {
    expect(await failuresOf({ program: process.execPath, arguments: ["scenario.mjs", REPOSITORY] })).toEqual([]);
  });
});

describe.skipIf(missingPython !== undefined)("E2B's newest Python packages on gVisor", () => {
  test.for(["sync", "async"])("every call of the matrix works, %s", { timeout: BUSY_MS }, async (flavour) => {
    expect(await failuresOf({ program: pythonEnvironment.python, arguments: ["scenario.py", flavour] })).toEqual([]);
  });
});
