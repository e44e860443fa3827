import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { describeConfig, parseConfig, type ConfigFlags } from "../../src/main/config.ts";

let home: string;
let folder: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "config-"));
  folder = join(home, ".config", "sandboxer");
  mkdirSync(folder, { recursive: true });
});
afterEach(() => rmSync(home, { recursive: true }));

const write = (name: string, ...lines: string[]): void => writeFileSync(join(folder, name), `${lines.join("\n")}\n`);
const parse = (flags: ConfigFlags = {}, env: Record<string, string> = {}) =>
  parseConfig({ flags, env, homeDirectory: home });

function problem(flags: ConfigFlags = {}): string {
  try {
    parse(flags);
    return "";
  } catch (error) {
    expect(error).toMatchObject({ code: "bad_request" });
    return (error as Error).message.replaceAll(`${folder}/`, "");
  }
}

test("the file overrides the default, the environment the file, and a flag all of them", () => {
  write("config.yaml", "# mine", "port: 7001", "lease-ttl: 20s", "max_clients: 5", "log_level: debug");
  const config = parse({ logLevel: "error" }, { PORT: "7002" });
  expect(config).toMatchObject({ port: 7002, leaseTtlMs: 20_000, maxClients: 5, logLevel: "error", host: "127.0.0.1" });
  expect(config.origins).toMatchObject({
    port: "environment PORT",
    leaseTtlMs: `file ${folder}/config.yaml:3`,
    logLevel: "flag --log-level",
    host: "default",
  });
  expect(config.configFile).toBe(join(folder, "config.yaml"));
});

test("TOML says the same", () => {
  write(
    "config.toml",
    "port = 7001",
    'lease_ttl = "20s"',
    "allow-network = true",
    "[secrets.github]",
    'environment = "T"',
  );
  expect(parse()).toMatchObject({
    port: 7001,
    leaseTtlMs: 20_000,
    allowNetwork: true,
    secrets: { github: { environment: "T" } },
    origins: { allowNetwork: `file ${folder}/config.toml:3` },
  });
});

test("our own variable overrides the one with a common name", () => {
  expect(parse({}, { PORT: "1", SANDBOXER_PORT: "2" })).toMatchObject({
    port: 2,
    origins: { port: "environment SANDBOXER_PORT" },
  });
  expect(parse({}, { SANDBOXER_STORE: "/srv" }).store).toBe("/srv");
});

test("a file may be named by a flag, or by the environment, and must then exist", () => {
  write("config.yaml", "port: 1");
  write("other.toml", "port = 2");
  write("third.yaml", "port: 3");
  const other = join(folder, "other.toml");
  expect(parse({ config: other }).port).toBe(2);
  expect(parse({}, { SANDBOXER_CONFIG: join(folder, "third.yaml") }).port).toBe(3);
  expect(parse({ config: other }, { SANDBOXER_CONFIG: join(folder, "third.yaml") }).port).toBe(2);
  expect(parse({}, { SANDBOXER_CONFIG: "" }).port).toBe(1);
  expect(problem({ config: join(folder, "none.yaml") })).toBe("none.yaml: does not exist.");
});

test("XDG_CONFIG_HOME is honoured, for the file and for the profiles", () => {
  mkdirSync(join(home, "xdg", "sandboxer"), { recursive: true });
  writeFileSync(join(home, "xdg", "sandboxer", "config.yaml"), "port: 4");
  const config = parse({}, { XDG_CONFIG_HOME: join(home, "xdg") });
  expect(config).toMatchObject({ port: 4, profilesDirectory: join(home, "xdg", "sandboxer", "profiles") });
  expect(parse().profilesDirectory).toBe(join(folder, "profiles"));
});

test("an empty file, and one with only comments, set nothing", () => {
  write("config.yaml", "# nothing");
  expect(parse().port).toBe(8080);
  rmSync(join(folder, "config.yaml"));
  write("config.toml", "");
  expect(parse().port).toBe(8080);
});

test("paths are relative to the file, and ~ is the home directory", () => {
  write(
    "config.yaml",
    "store: checkpoints",
    "data_directory: ~/data",
    "profiles_directory: ../profiles",
    "audit_file: /var/log/audit",
    "secrets: {a: {file: ~/token}, b: {file: token}}",
  );
  expect(parse()).toMatchObject({
    store: join(folder, "checkpoints"),
    dataDirectory: join(home, "data"),
    profilesDirectory: join(home, ".config", "profiles"),
    auditFile: "/var/log/audit",
    secrets: { a: { file: join(home, "token") }, b: { file: join(folder, "token") } },
  });
  write("config.yaml", "store: s3://bucket/prefix");
  expect(parse().store).toBe("s3://bucket/prefix");
});

test("a store in the file overrides --default-store", () => {
  write("config.yaml", "store: /srv");
  expect(parse({ defaultStore: true }).store).toBe("/srv");
});

test("settings of the client are left to it", () => {
  write("config.yaml", "current_context: home", "contexts: {home: {url: http://127.0.0.1:1}}", "current-context: x");
  expect(parse().port).toBe(8080);
});

describe("mistakes", () => {
  test("is reported at once, with lines and suggestions", () => {
    write(
      "config.yaml",
      "prot: 1",
      "lease_tll: 5s",
      "host: [a]",
      "api_keys: hunter2",
      "port: 1",
      "secrets:",
      "  Git: {file: x}",
      "  git: {fiel: x}",
      "  two: {file: x, environment: Y}",
      "  raw: hunter2",
      "  cmd: {command: hunter2}",
    );
    const lines = problem().split("\n  ");
    expect(lines).toEqual([
      "The config file is not valid:",
      "config.yaml:1:1: prot: there is no such setting. Did you mean port?",
      "config.yaml:2:1: lease_tll: there is no such setting. Did you mean lease_ttl?",
      "config.yaml:3:7: host: must be a single value.",
      expect.stringContaining("config.yaml:4:1: api_keys: API keys are not allowed in this file."),
      expect.stringContaining("config.yaml:7:3: secrets.Git: must be the name of a secret"),
      "config.yaml:8:8: secrets.git: must have one of file, environment and command.",
      "config.yaml:8:9: secrets.git.fiel: there is no such key. Did you mean file?",
      "config.yaml:9:8: secrets.two: must have one of file, environment and command.",
      "config.yaml:10:8: secrets.raw: must be a map.",
      "config.yaml:11:18: secrets.cmd.command: must be a list.",
    ]);
    expect(lines.join()).not.toContain("hunter2");
  });

  test.each([
    [["port: many"], 'file config.yaml:1: "many" must be an integer from 0 to 65535'],
    [["# x", "lease_ttl: 4hours"], 'file config.yaml:2: "4hours" is not a duration.'],
    [["port: 1", "port: 2"], "config.yaml:2:1: Map keys must be unique."],
    [["lease_ttl: 5s", "lease-ttl: 5s"], "config.yaml:2:1: lease-ttl: is given twice, with - and with _."],
    [["port: ["], "config.yaml:2:1: "],
    [["- port"], "config.yaml:1:1: must be a map of settings."],
    [["port:"], "config.yaml:1:6: port: must be a single value."],
  ])("%j", (lines, expected) => {
    write("config.yaml", ...lines);
    expect(problem()).toContain(expected);
  });

  test("a wrong value that is overridden does no harm", () => {
    write("config.yaml", "port: many");
    expect(parse({ port: "1" }).port).toBe(1);
  });

  test("two files", () => {
    write("config.yaml", "port: 1");
    write("config.toml", "port = 1");
    expect(problem()).toBe("There are two config files: config.yaml and config.toml.");
    expect(parse({ config: join(folder, "config.toml") }).port).toBe(1);
  });
});

describe("the description", () => {
  const described = (flags: ConfigFlags, env: Record<string, string>) =>
    Object.fromEntries(describeConfig(parse(flags, env)).map((setting) => [setting.key, setting]));

  test("has each value, its origin and the overridden values", () => {
    write("config.yaml", "port: 7001", "lease_ttl: 20s");
    const { port, lease_ttl, store } = described({ port: "7003" }, { PORT: "7002" });
    expect(port).toMatchObject({
      value: "7003",
      origin: "flag --port",
      flag: "--port",
      environment: ["SANDBOXER_PORT", "PORT"],
      overridden: [
        { origin: "environment PORT", text: "7002" },
        { origin: `file ${folder}/config.yaml:1`, text: "7001" },
        { origin: "default", text: "8080" },
      ],
    });
    expect(lease_ttl).toMatchObject({ value: "20s", overridden: [{ origin: "default", text: "15s" }] });
    expect(store).toMatchObject({ value: undefined, origin: "default", overridden: [] });
  });

  test("has no keys", () => {
    const config = parse({}, { SANDBOXER_API_KEYS: "hunter2,hunter3" });
    expect(JSON.stringify([describeConfig(config), config.layers])).not.toContain("hunter");
    expect(described({}, { SANDBOXER_API_KEYS: "hunter2,hunter3" })["SANDBOXER_API_KEYS"]).toMatchObject({
      value: "2 keys",
      origin: "environment SANDBOXER_API_KEYS",
    });
  });
});
