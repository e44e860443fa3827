import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { withHostInterpreters } from "../../../../../test/kit/server/host-interpreters.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { pythonEnvironment, whyNoPython } from "../../../../../test/kit/services/python-environment.ts";
import { openTestDomain, type TestDomain, whyNoTestDomain } from "../../../../../test/kit/services/test-domain.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { FOUND } from "./domain-found.ts";

const KEY = "a-key-of-twenty-characters";
const PROGRAM_MS = 150_000;

const missing = whyNoTestDomain() ?? whyNoPython();
if (missing !== undefined) console.warn(`The tests of E2B_DOMAIN behind Caddy are skipped: ${missing}`);

/** A server behind Debian's Caddy with a wildcard name. */
async function startBehindCaddy(): Promise<TestDomain> {
  const opened = await openTestDomain(await temporaryFolder());
  onTestFinished(() => opened.close());
  const { httpUrl } = await startTestServer({
    apiKeys: [KEY],
    previewDomain: `https://${opened.domain}`,
    access: { trustedProxies: ["127.0.0.1"] },
    wrapBackend: withHostInterpreters,
  });
  await opened.passTo(httpUrl);
  return opened;
}

describe.skipIf(missing !== undefined)("E2B_DOMAIN behind Debian's Caddy", () => {
  test.for([
    ["npm", process.execPath, "domain-program.mjs"],
    ["PyPI, sync", pythonEnvironment.python, "domain_program.py", "sync"],
    ["PyPI, async", pythonEnvironment.python, "domain_program.py", "async"],
  ] as const)("a program with E2B's packages of %s needs that and a key, and nothing else", async ([, ...program]) => {
    const { domain, env: authority, withNames } = await startBehindCaddy();
    const [interpreter, file, ...rest] = program;
    const [unshare = "", ...argv] = [...withNames, interpreter, join(import.meta.dirname, file), ...rest];
    const env = { PATH: process.env["PATH"] ?? "", E2B_DOMAIN: domain, E2B_API_KEY: KEY, ...authority };
    const { stdout } = await promisify(execFile)(unshare, argv, { env, timeout: PROGRAM_MS });
    const found = JSON.parse(stdout) as { id: string; host: string; url: string };
    expect(found).toMatchObject(FOUND);
    expect(found.host).toBe(`3000-${found.id}.${domain}`);
    expect(new URL(found.url).host).toBe(`49983-${found.id}.${domain}`);
  });
});
