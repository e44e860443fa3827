import { writeFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { KeyFile } from "../../src/gateway/access/key-file.ts";
import { describeConfig, parseConfig, type ConfigFlags } from "../../src/main/config.ts";
import { resourceLimits, sandboxesMemory } from "../../src/main/resource-limits.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

function parse(flags: ConfigFlags = {}, env: Record<string, string> = {}) {
  return parseConfig({ flags, env, homeDirectory: "/home/ada" });
}

test("without flags and environment there is no store and the address is loopback", () => {
  const config = parse();
  expect(config).toMatchObject({
    host: "127.0.0.1",
    port: 8080,
    backend: "gvisor",
    platform: "auto",
    image: "host",
    allowNetwork: false,
    rootInside: { gvisor: true, docker: false },
    dataDirectory: "/home/ada/.local/share/sandboxer",
    cacheDirectory: "/home/ada/.cache/sandboxer",
    leaseTtlMs: 15_000,
    handoffTimeoutMs: 30_000,
    defaultIdleTimeoutSeconds: 300,
    keepCheckpoints: { keep_last: 3 },
    keepSnapshots: undefined,
    collectEveryMs: 21_600_000,
    scrubEvery: "auto",
    scrubRateMb: 20,
    proveSnapshots: false,
    maxSandboxes: 100,
    maxClients: 1000,
    maxMessageBytes: 1_048_576,
    maxCollectedMb: 256,
    rateLimit: 1000,
    apiKeys: [],
    logLevel: "info",
  });
  expect(config.store).toBeUndefined();
  expect(config.runscPath).toBeUndefined();
});

test("a flag overrides the environment, and the environment the default", () => {
  const env = { PORT: "9000", CHECKPOINT_AND_RESTORE_PATH: "/srv/store" };
  const config = parse({ port: "0" }, env);
  expect(config.port).toBe(0);
  expect(config.origins.port).toBe("flag --port");
  expect(config.store).toBe("/srv/store");
  expect(config.origins.store).toBe("environment CHECKPOINT_AND_RESTORE_PATH");
  expect(config.origins.host).toBe("default");
});

test("labels of the server are a list of pairs", () => {
  expect(parse().serverLabels).toEqual({});
  const env = { SANDBOXER_SERVER_LABELS: "zone=eu-1, pool=gpu" };
  expect(parse({}, env).serverLabels).toEqual({ zone: "eu-1", pool: "gpu" });
});

test("an empty variable counts as not set", () => {
  expect(parse({}, { PORT: "", CHECKPOINT_AND_RESTORE_PATH: "" })).toMatchObject({ port: 8080 });
});

test("root inside is a list of backends, or off", () => {
  expect(parse({ rootInside: "off" }).rootInside).toEqual({ gvisor: false, docker: false });
  expect(parse({}, { SANDBOXER_ROOT_INSIDE: "gvisor, docker" }).rootInside).toEqual({ gvisor: true, docker: true });
  for (const text of ["yes", "off,gvisor", "daytona"]) {
    expect(() => parse({ rootInside: text })).toThrow("must be gvisor, docker, gvisor,docker or off");
  }
});

test("a network is allowed by the flag or the environment, and by nothing that is unclear", () => {
  expect(parse({ allowNetwork: "true" }).allowNetwork).toBe(true);
  expect(parse({}, { SANDBOXER_ALLOW_NETWORK: "1" }).allowNetwork).toBe(true);
  expect(parse({}, { SANDBOXER_ALLOW_NETWORK: "no" }).allowNetwork).toBe(false);
  expect(() => parse({}, { SANDBOXER_ALLOW_NETWORK: "perhaps" })).toThrow(/SANDBOXER_ALLOW_NETWORK.*true or false/);
});

describe("--default-store", () => {
  test("is the data directory's store", () => {
    const config = parse({ defaultStore: true }, { XDG_DATA_HOME: "/data" });
    expect(config.store).toBe("/data/sandboxer/store");
    expect(config.origins.store).toBe("flag --default-store");
  });

  test("gives way to a store that is named", () => {
    expect(parse({ defaultStore: true, store: "s3://bucket/prefix" }).store).toBe("s3://bucket/prefix");
    expect(parse({ defaultStore: true }, { CHECKPOINT_AND_RESTORE_PATH: "/srv" }).store).toBe("/srv");
  });
});

test("relative XDG directories are ignored", () => {
  expect(parse({}, { XDG_CACHE_HOME: "cache" }).cacheDirectory).toBe("/home/ada/.cache/sandboxer");
});

test.each([
  ["ext.folder", "ext.folder"],
  ["ext.compose-ssh", "compose-ssh"],
])("the backend may be an extension: %s", (backend, known) => {
  expect(parse({ backend }).backend).toBe(known);
});

test.each<[ConfigFlags, string]>([
  [{ port: "65536" }, "flag --port"],
  [{ port: "-1" }, "flag --port"],
  [{ port: "NaN" }, "flag --port"],
  [{ leaseTtlMs: "0s" }, "flag --lease-ttl"],
  [{ leaseTtlMs: "4hours" }, "flag --lease-ttl"],
  [{ platform: "vm" }, "flag --platform"],
  [{ maxSandboxes: "0" }, "flag --max-sandboxes"],
  [{ maxResources: "memory=8" }, "flag --max-resources"],
  [{ maxResources: "disc=8g" }, "flag --max-resources"],
  [{ maxResources: "cpus=0" }, "flag --max-resources"],
  [{ maxTotalMemory: "0%" }, "flag --max-total-memory"],
  [{ maxTotalMemory: "much" }, "flag --max-total-memory"],
  [{ store: "ftp://host/x" }, "flag --store"],
  [{ backend: "../x" }, "flag --backend"],
  [{ serverLabels: "zone" }, "flag --server-labels"],
  [{ serverLabels: "zone=a b" }, "flag --server-labels"],
  [{ serverLabels: "zone=a,zone=b" }, "flag --server-labels"],
])("%j is refused, naming %s", (flags, origin) => {
  expect(() => parse(flags)).toThrow(
    expect.objectContaining({ code: "bad_request", message: expect.stringContaining(origin) }),
  );
});

test("the maxima of a sandbox are the machine's, except those that are set", () => {
  const machine = resourceLimits(parse());
  expect(machine.everywhere).toEqual({});
  expect(machine.here).toMatchObject({ cpus: availableParallelism(), processes: 4096 });
  expect(machine.here.memoryBytes).toBeLessThanOrEqual(totalmem());
  expect(machine.totalMemoryBytes).toBe(Math.floor((machine.here.memoryBytes ?? 0) * 0.9));
  const { everywhere, here } = resourceLimits(parse({ maxResources: "memory=512m, disk=1t,cpus=1.5" }));
  expect(everywhere).toEqual({ memoryBytes: 512 * 1024 ** 2, diskBytes: 1024 ** 4, cpus: 1.5 });
  expect(here).toEqual({ ...everywhere, processes: 4096 });
});

test("sandboxes together may be promised more than the machine has, and never use all of it", () => {
  const config = parse({ maxTotalMemory: "300%" });
  expect(resourceLimits(config).totalMemoryBytes).toBeGreaterThan(totalmem() * 0.9);
  expect(sandboxesMemory(config)).toBeLessThan(totalmem());
  expect(sandboxesMemory(parse({ maxTotalMemory: "64m" }))).toBe(64 * 1024 ** 2);
});

test("a bad variable is named", () => {
  expect(() => parse({}, { PORT: "http" })).toThrow(/environment PORT: "http" must be an integer/);
});

describe("an address that others can reach", () => {
  test.each(["0.0.0.0", "::", "192.0.2.1", "example.org", "127.example.org"])("%s is refused without keys", (host) => {
    expect(() => parse({ host })).toThrow(/without keys/);
    expect(parse({ host }, { SANDBOXER_API_KEYS: "one" }).host).toBe(host);
  });

  test("a key of the data directory is enough, and an unreadable one does not count", async () => {
    const dataDirectory = await temporaryFolder();
    expect(() => parse({ host: "0.0.0.0", dataDirectory })).toThrow(/without keys/);
    await new KeyFile(dataDirectory).create({ name: "ci", scope: "use" });
    expect(parse({ host: "0.0.0.0", dataDirectory }).host).toBe("0.0.0.0");
    writeFileSync(join(dataDirectory, "keys.json"), "{");
    expect(() => parse({ host: "0.0.0.0", dataDirectory })).toThrow(/not JSON/);
    expect(parse({ dataDirectory }).host).toBe("127.0.0.1");
  });

  test.each(["127.0.0.1", "127.8.8.8", "localhost", "::1"])("%s is not one", (host) => {
    expect(parse({ host }).host).toBe(host);
  });
});

test("keys are split and never described", () => {
  const config = parse({}, { SANDBOXER_API_KEYS: " first , second,," });
  expect(config.apiKeys).toEqual(["first", "second"]);
  expect(JSON.stringify(describeConfig(config))).not.toContain("first");
});
