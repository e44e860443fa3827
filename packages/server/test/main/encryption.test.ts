import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { checkEncryption, masterKeysOf } from "../../src/main/encryption.ts";
import { SecretSources } from "../../src/secrets/secret-sources.ts";

const KEY = randomBytes(32).toString("base64");

function mastersWith(environment: Record<string, string>) {
  const definitions = { main: { environment: "MAIN" }, old: { environment: "OLD" } };
  const secrets = new SecretSources({ definitions, environment, warn: () => {} });
  return masterKeysOf({ encryptionKey: "main", encryptionOldKeys: ["old"] }, secrets);
}

test("the keys of a server are its secrets, read each time", async () => {
  const environment: Record<string, string> = { MAIN: KEY };
  const masters = mastersWith(environment);
  const first = await masters.resolve("main");
  environment["MAIN"] = randomBytes(32).toString("hex");
  expect((await masters.resolve("main")).fingerprint).not.toBe(first.fingerprint);
  expect(masters).toMatchObject({ defaultName: "main", oldNames: ["old"] });
});

test.each([
  ["does not exist", {}, "is not set"],
  ["is no key", { MAIN: "a password that people know" }, "32 bytes"],
])("a server whose key %s does not start, and does not show it", async (_, environment, why) => {
  const failing = checkEncryption({ encryptionKey: "main" }, mastersWith(environment));
  await expect(failing).rejects.toMatchObject({
    code: "key_unavailable",
    message: expect.stringContaining(why) as string,
  });
  await expect(failing).rejects.not.toThrow("a password that people know");
});
