import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Outside, PATIENCE_MS } from "./support/outside.ts";

const HELLO = join(import.meta.dirname, "../../../examples/hello.mjs");
const { SANDBOXER_TEST_RUNSC: runsc = "", SANDBOXER_TEST_PLATFORM: platform = "auto" } = process.env;

let outside: Outside;
beforeAll(async () => {
  outside = await Outside.open({ types: false });
}, PATIENCE_MS);
afterAll(() => outside.close());

test("the installed command sets gVisor up with the agent of its package, serves, runs, saves and resumes", async () => {
  const folder = await outside.newFolder("gvisor");
  await outside.run(folder, ["npm", "install", "@sandboxer/cli"]);
  const sandboxer = join(folder, "node_modules/.bin/sandboxer");
  const engine = ["--runsc", runsc, "--platform", platform, "--cache-directory", join(folder, "cache")];
  const { agentPath } = JSON.parse(await outside.run(folder, [sandboxer, "setup", "--json", ...engine])) as {
    agentPath: string;
  };
  expect(agentPath).toMatch(new RegExp(`^${join(folder, "cache/agents")}`));

  const { url } = await outside.serve(folder, [sandboxer], [...engine, "--store", join(folder, "store")]);
  expect(await outside.run(folder, [sandboxer, "run", "--", "echo", "hello"], { SANDBOXER_URL: url })).toBe("hello\n");
  await copyFile(HELLO, join(folder, "hello.mjs"));
  expect(await outside.run(folder, ["node", "hello.mjs", url.replace("http", "ws")])).toContain("Done: the counter");
});
