import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const BIN = fileURLToPath(new URL("../bin/sandboxer.mjs", import.meta.url));
/** Prints every loaded module. */
const WATCH = `import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) { process.stderr.write(url + "\\n"); return next(url, context); } });`;

function modulesLoadedBy(...argv: string[]): string[] {
  const watch = `data:text/javascript,${encodeURIComponent(WATCH)}`;
  const { status, stderr } = spawnSync(process.execPath, ["--import", watch, BIN, ...argv], { encoding: "utf8" });
  expect(status).toBe(0);
  return stderr.split("\n").filter((url) => url.startsWith("file:"));
}

test("the overview loads names and help, no command, no schema, no server and no SDK", () => {
  const loaded = modulesLoadedBy("--help");
  expect(loaded.length).toBeGreaterThan(5);
  expect(loaded.filter((url) => /\/commands\/|\/zod\/|packages\/server|packages\/client/.test(url))).toEqual([]);
  expect(loaded.length).toBeLessThan(30);
});

test("the help of a command loads that command, and neither schemas nor the server", () => {
  const loaded = modulesLoadedBy("exec", "--help");
  expect(loaded.filter((url) => url.includes("/commands/")).map((url) => url.split("/").at(-1))).toEqual(["exec.ts"]);
  expect(loaded.filter((url) => /\/zod\/|packages\/server|packages\/client/.test(url))).toEqual([]);
});
