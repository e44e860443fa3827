import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { parseConfig } from "../../src/main/config.ts";
import { openSecrets } from "../../src/main/secrets.ts";
import { resolveSecretRefs, revealEnvironment } from "../../src/secrets/secret.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "secrets-"))));
afterEach(() => {
  rmSync(folder, { recursive: true });
  vi.unstubAllEnvs();
});

test("what the config file names reaches the variables of a sandbox, and nothing is read before", async () => {
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
  expect(warnings).toEqual([expect.stringContaining("The secret a: other users may read")]);
  await expect(resolveSecretRefs({ ONE: "a", FOUR: "d" }, secrets)).rejects.toThrow(
    expect.objectContaining({ code: "secret_unavailable", message: 'There is no secret "d" on this server.' }),
  );
});
