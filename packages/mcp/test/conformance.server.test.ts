import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startTestServer } from "../../../test/kit/server/test-server.ts";
import { temporaryFolder } from "../../../test/kit/temporary-folder.ts";
import { fixtureAnswerer } from "./support/conformance-fixtures.ts";

const ROOT = join(import.meta.dirname, "../../..");
const RUNNER = join(ROOT, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** Features that our tools do not use. A server that does not announce them need not have them. */
const NOT_OFFERED = [
  "completion-complete",
  "logging-set-level",
  "prompts-list",
  "prompts-get-simple",
  "prompts-get-with-args",
  "prompts-get-embedded-resource",
  "prompts-get-with-image",
  "resources-subscribe",
  "resources-unsubscribe",
];
/** Requests from the server to the client, and streams of a session. There are no sessions here, nor in 2026-07-28. */
const NEED_A_SESSION = [
  "server-sse-multiple-streams",
  "tools-call-sampling",
  "tools-call-elicitation",
  "elicitation-sep1034-defaults",
  "elicitation-sep1330-enums",
];
/** These call tools and read resources that only the runner's own server has. */
const NEED_FIXTURES = [
  "tools-call-simple-text",
  "tools-call-image",
  "tools-call-audio",
  "tools-call-embedded-resource",
  "tools-call-mixed-content",
  "tools-call-with-logging",
  "tools-call-error",
  "tools-call-with-progress",
  "resources-read-text",
  "resources-read-binary",
  "resources-templates-read",
];

/** Runs every active scenario. The runner fails if another one fails, and also if one of these passes. */
async function passed(url: string, failing: readonly string[]): Promise<string[]> {
  const folder = await temporaryFolder();
  const baseline = join(folder, "baseline.yml");
  await writeFile(baseline, `server:\n${failing.map((name) => `  - ${name}\n`).join("")}`);
  const argv = [RUNNER, "server", "--url", `${url}/mcp`, "--expected-failures", baseline];
  const options = { cwd: folder, maxBuffer: 64 * 1024 * 1024 };
  const ran = promisify(execFile)(process.execPath, argv, options);
  const { stdout } = await ran.catch(({ stdout: printed }: { stdout: string }) => {
    throw new Error(printed.slice(printed.indexOf("=== SUMMARY")));
  });
  return [...stdout.matchAll(/^✓ ([\w-]+):/gm)].map(([, name = ""]) => name);
}

test("our tools pass the scenarios of the public conformance runner for any server", async () => {
  const { httpUrl } = await startTestServer();
  const scenarios = await passed(httpUrl, [...NOT_OFFERED, ...NEED_A_SESSION, ...NEED_FIXTURES]);
  expect(scenarios).toEqual(expect.arrayContaining(["server-initialize", "ping", "tools-list", "resources-list"]));
  expect(scenarios).toContain("dns-rebinding-protection");
});

test("the endpoint passes the scenarios for every kind of answer, with the runner's own tools behind it", async () => {
  const { httpUrl } = await startTestServer({ answerMcp: fixtureAnswerer() });
  const failing = [...NOT_OFFERED.filter((name) => name !== "logging-set-level"), ...NEED_A_SESSION];
  expect(await passed(httpUrl, failing)).toEqual(expect.arrayContaining([...NEED_FIXTURES, "logging-set-level"]));
});
