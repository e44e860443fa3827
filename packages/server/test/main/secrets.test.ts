import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { describeConfig, parseConfig } from "../../src/main/config.ts";
import { KeyFile } from "../../src/gateway/access/key-file.ts";
import { openSecrets, secretsForSandboxes } from "../../src/main/secrets.ts";
import { resolveSecretRefs, revealEnvironment } from "../../src/secrets/secret.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "secrets-"))));
afterEach(() => {
  rmSync(folder, { recursive: true });
  vi.unstubAllEnvs();
});

test("secrets that the config file names reach the variables of a sandbox, and nothing is read before", async () => {
  const config = join(folder, "config.yaml");
  writeFileSync(
    config,
    "secrets: {a: {file: token}, b: {environment: OF_THE_SERVER}, c: {command: [printenv, OF_THE_SERVER]}}\n",
  );
  const warnings: string[] = [];
  const secrets = openSecrets(parseConfig({ flags: { config }, env: {}, homeDirectory: "/home/ada" }), (message) =>
    warnings.push(message),
  );
  writeFileSync(join(folder, "token"), "from the file\n", { mode: 0o640 });
  vi.stubEnv("OF_THE_SERVER", "from the server");
  const environment = await resolveSecretRefs({ ONE: "a", TWO: "b", THREE: "c" }, secrets);
  expect(revealEnvironment(environment)).toEqual({
    ONE: "from the file",
    TWO: "from the server",
    THREE: "from the server",
  });
  expect(warnings).toEqual([expect.stringContaining("The secret a: other users can read")]);
  await expect(resolveSecretRefs({ ONE: "a", FOUR: "d" }, secrets)).rejects.toThrow(
    expect.objectContaining({ code: "secret_unavailable", message: 'There is no secret "d" on this server.' }),
  );
});

test("without a key for Daytona the error explains where to put one", async () => {
  const secrets = openSecrets(parseConfig({ flags: {}, env: {}, homeDirectory: folder }), () => {});
  await expect(secrets.resolve("daytona-api-key")).rejects.toThrow(
    expect.objectContaining({ code: "secret_unavailable", hint: expect.stringContaining("DAYTONA_API_KEY") as string }),
  );
});

test("Daytona's key is a secret of that name, and the config file's counts", async () => {
  const env = { DAYTONA_API_KEY: "dtn_from-the-environment" };
  const read = (flags: { config?: string } = {}) => parseConfig({ flags, env, homeDirectory: folder });
  const config = read();
  const secret = await openSecrets(config, () => {}).resolve("daytona-api-key");
  expect(secret.reveal()).toBe("dtn_from-the-environment");
  const shown = [inspect(config, { depth: 10, showHidden: true }), JSON.stringify([config, describeConfig(config)])];
  for (const text of shown) expect(text).not.toContain("dtn_");
  expect(describeConfig(config).find(({ name }) => name === "daytonaApiKey")).toMatchObject({
    value: "set",
    flag: undefined,
    origin: "environment DAYTONA_API_KEY",
  });

  const file = join(folder, "config.yaml");
  writeFileSync(file, "secrets: {daytona-api-key: {file: key}}\n");
  writeFileSync(join(folder, "key"), "dtn_from-the-file\n", { mode: 0o600 });
  const fromFile = await openSecrets(read({ config: file }), () => {}).resolve("daytona-api-key");
  expect(fromFile.reveal()).toBe("dtn_from-the-file");
});

test("the settings of Daytona are checked", () => {
  const read = (env: Record<string, string>) => () => parseConfig({ flags: {}, env, homeDirectory: folder });
  const env = {
    DAYTONA_ORGANIZATION_ID: "org-1",
    DAYTONA_API_URL: "https://daytona.test/api",
    DAYTONA_TOOLBOX_URL: "https://proxy.test/toolbox",
    DAYTONA_TARGET: "eu",
  };
  expect(read(env)()).toMatchObject({
    daytonaOrganizationId: "org-1",
    daytonaApiUrl: "https://daytona.test/api",
    daytonaToolboxUrl: "https://proxy.test/toolbox",
    daytonaTarget: "eu",
  });
  expect(read({ DAYTONA_API_URL: "app.daytona.io" })).toThrow("environment DAYTONA_API_URL");
  expect(read({ DAYTONA_ORGANIZATION_ID: "a\nb" })).toThrow("environment DAYTONA_ORGANIZATION_ID");
});

test("an encryption key of the server, or of one of its API keys, is no secret of a sandbox", async () => {
  const config = join(folder, "config.yaml");
  const definitions = ["now", "before", "tenant", "other"].map((name) => `${name}: {environment: ANY}`).join(", ");
  writeFileSync(config, `secrets: {${definitions}}\nencryption_key: now\nencryption_old_keys: before\n`);
  vi.stubEnv("ANY", "a value");
  const parsed = parseConfig({ flags: { config, dataDirectory: folder }, env: {}, homeDirectory: "/home/ada" });
  await new KeyFile(folder).create({ name: "tenant's", scope: "use", encryptionKey: "tenant" });
  const secrets = secretsForSandboxes(
    parsed,
    openSecrets(parsed, () => {}),
  );
  for (const name of ["now", "before", "tenant"]) {
    await expect(secrets.resolve(name)).rejects.toThrow(`The secret ${name} is an encryption key of this server.`);
  }
  expect((await secrets.resolve("other")).reveal()).toBe("a value");
});
