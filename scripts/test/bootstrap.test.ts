import { spawn } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

const SCRIPT = fileURLToPath(new URL("../bootstrap.mjs", import.meta.url));
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "bootstrap-"));
  mkdirSync(join(root, "scripts"));
  mkdirSync(join(root, "bin"));
  copyFileSync(SCRIPT, join(root, "scripts", "bootstrap.mjs"));
  writeLock("1.0.0");
});
afterEach(() => rmSync(root, { recursive: true }));

function writeLock(version: string): void {
  writeFileSync(
    join(root, "package-lock.json"),
    JSON.stringify({ packages: { "": {}, "node_modules/a": { version } } }),
  );
}

/** An npm that logs its calls and then does as told. */
function writeNpm(script: string): void {
  writeFileSync(join(root, "bin", "npm"), `#!/bin/sh\necho "$@" >> ${root}/calls\n${script}\n`);
  chmodSync(join(root, "bin", "npm"), 0o755);
}

async function bootstrap(path = `${root}/bin:/usr/bin:/bin`) {
  const env = { ...process.env, PATH: path };
  const child = spawn(process.execPath, [join(root, "scripts", "bootstrap.mjs")], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (data: Buffer) => (stderr += data.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, stderr };
}

const calls = (): number => readFileSync(join(root, "calls"), "utf8").trim().split("\n").length;
const INSTALL = "mkdir -p node_modules";

test("installs once, and again when the lockfile has changed", async () => {
  writeNpm(INSTALL);
  expect(await bootstrap()).toEqual({ code: 0, stderr: "Installing dependencies (npm ci) …\n" });
  expect(await bootstrap()).toEqual({ code: 0, stderr: "" });
  expect(calls()).toBe(1);
  writeLock("2.0.0");
  expect((await bootstrap()).code).toBe(0);
  expect(calls()).toBe(2);
});

test("what npm ci by hand installed is taken as it is", async () => {
  writeNpm("exit 9");
  mkdirSync(join(root, "node_modules"));
  const record = JSON.stringify({ packages: { "node_modules/a": { version: "1.0.0" } } });
  writeFileSync(join(root, "node_modules", ".package-lock.json"), record);
  expect(await bootstrap()).toEqual({ code: 0, stderr: "" });
});

test("two at the same moment install once", async () => {
  writeNpm(`sleep 0.5; ${INSTALL}`);
  const both = await Promise.all([bootstrap(), bootstrap()]);
  expect(both.map((result) => result.code)).toEqual([0, 0]);
  expect(both.some((result) => result.stderr.includes("waiting for it"))).toBe(true);
  expect(calls()).toBe(1);
});

test("a failing npm is told, and the next run tries again", async () => {
  writeNpm("exit 7");
  const result = await bootstrap();
  expect(result.code).toBe(1);
  expect(result.stderr).toContain("npm ci failed (exit code 7). Check that the package registry can be reached");
  writeNpm(INSTALL);
  expect((await bootstrap()).code).toBe(0);
});

test("no npm is told", async () => {
  const result = await bootstrap(`${root}/bin`);
  expect(result.code).toBe(1);
  expect(result.stderr).toContain("npm could not be started");
});
