import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";

let base: string;
let file: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "config-"));
  mkdirSync(join(base, "sandboxer"));
  file = join(base, "sandboxer", "config.yaml");
});
afterEach(() => rmSync(base, { recursive: true }));

async function run(argv: readonly string[], env: Record<string, string> = {}) {
  const io = fakeIo({ XDG_CONFIG_HOME: base, ...env });
  const code = await runProgram(["config", ...argv], io);
  return { code, out: io.out(), err: io.err() };
}

test("prints every setting with its value", async () => {
  writeFileSync(file, "lease_ttl: 20s\nsecrets: {github: {environment: GITHUB_TOKEN}}\n");
  const { code, out, err } = await run(["--port", "9000"]);
  expect(code).toBe(0);
  expect(err).toBe(`Config file ${file}\n`);
  expect(out).toMatch(/^host +127\.0\.0\.1\nport +9000\n/);
  expect(out).toMatch(/\nstore +none\n/);
  expect(out).toMatch(/\nlease_ttl +20s\n/);
  expect(out).toMatch(/\nsecrets\.github +not shown\n/);
});

test("--explain says where each value comes from and what it overrides", async () => {
  writeFileSync(file, "port: 7001\nsecrets: {github: {command: [pass, show, github]}}\n");
  const { out } = await run(["--explain", "--port", "7003"], { PORT: "7002" });
  const lines = out.split("\n").map((line) => line.trim().replaceAll(/ {2,}/g, " | "));
  const at = lines.indexOf("port | flag --port | 7003");
  expect(lines.slice(at, at + 4)).toEqual([
    "port | flag --port | 7003",
    "overrides environment PORT | 7002",
    `overrides file ${file}:1 | 7001`,
    "overrides default | 8080",
  ]);
  expect(lines).toContain("secrets.github | command pass | not shown");
});

test("--json prints every setting for programs", async () => {
  writeFileSync(file, "port: 7001\nsecrets: {github: {file: /run/token}}\n");
  const plain = JSON.parse((await run(["--json"])).out) as object;
  expect(plain).toMatchObject({
    config_file: file,
    settings: { port: "7001", store: null, lease_ttl: "15s" },
    secrets: ["github"],
  });
  const explained = JSON.parse((await run(["--json", "--explain"])).out) as object;
  expect(explained).toMatchObject({
    settings: {
      port: {
        value: "7001",
        origin: `file ${file}:1`,
        overridden: [{ value: "8080", origin: "default" }],
        flag: "--port",
        environment: ["SANDBOXER_PORT", "PORT"],
      },
    },
    secrets: { github: { source: "file /run/token" } },
  });
});

test("no output contains keys or secrets", async () => {
  writeFileSync(file, "secrets: {github: {environment: GITHUB_TOKEN}, other: {command: [echo, hunter2]}}\n");
  const env = { SANDBOXER_API_KEYS: "hunter2", GITHUB_TOKEN: "hunter2" };
  for (const argv of [[], ["--explain"], ["--json"], ["--json", "--explain"]]) {
    const { code, out, err } = await run(argv, env);
    expect(code).toBe(0);
    expect(out + err).not.toContain("hunter2");
    expect(out).toContain("1 keys");
  }
});

test("an error in a file names its line", async () => {
  writeFileSync(file, "port: 1\nhots: x\n");
  const { code, out, err } = await run([]);
  expect(code).toBe(2);
  expect(out + err).toContain(`${file}:2:1: hots: there is no such setting. Did you mean host?`);
});

test("--config names another file, and an address without keys can be shown", async () => {
  const other = join(base, "other.toml");
  writeFileSync(other, 'host = "0.0.0.0"\n');
  const { code, out } = await run(["--config", other, "--explain"]);
  expect(code).toBe(0);
  expect(out).toMatch(new RegExp(`^host +file ${other}:1 +0\\.0\\.0\\.0\n`));
});

test("the console is on unless a flag, a variable or the file turns it off", async () => {
  const value = async (argv: readonly string[], env: Record<string, string> = {}): Promise<string | undefined> =>
    /^console +(.*)$/m.exec((await run(argv, env)).out)?.[1];
  expect(await value([])).toBe("on");
  expect(await value(["--no-console"])).toBe("off");
  expect(await value([], { SANDBOXER_CONSOLE: "off" })).toBe("off");
  writeFileSync(file, "console: false\n");
  expect(await value([])).toBe("false");
  expect(await value([], { SANDBOXER_CONSOLE: "on" })).toBe("on");
});

test("the backend has two flags, and --backend wins", async () => {
  expect((await run(["--sandbox-backend", "fake"])).out).toMatch(/\nbackend +fake\n/);
  expect((await run(["--sandbox-backend", "fake", "--backend", "docker"])).out).toMatch(/\nbackend +docker\n/);
});
