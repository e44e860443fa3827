import { format, inspect } from "node:util";
import { pino } from "pino";
import { expect, test } from "vitest";
import { resolveSecretRefs, revealEnvironment, Secret, type SecretResolver } from "../../src/secrets/secret.ts";

const secret = new Secret("github", "hunter2");

test("a secret shows its name wherever it is printed", () => {
  let logged = "";
  const log = pino({ base: null }, { write: (line) => (logged += line) });
  log.info({ secret, nested: { env: [secret] } }, `a ${String(secret)}`);
  log.error(new Error(`no ${String(secret)}`));
  const shown = [
    String(secret),
    "".concat(secret as unknown as string),
    JSON.stringify({ secret }),
    inspect(secret, { showHidden: true, depth: null }),
    inspect({ a: [secret] }),
    inspect(new Map([["A", secret]])),
    format("%s %o %j %O", secret, secret, secret, secret),
    JSON.stringify(structuredClone(secret)),
    JSON.stringify(Object.entries(secret)),
    logged,
  ];
  for (const text of shown) expect(text).not.toContain("hunter2");
  expect(String(secret)).toBe("[secret github]");
  expect(JSON.stringify({ secret })).toBe('{"secret":"[secret github]"}');
  expect(secret.reveal()).toBe("hunter2");
});

test("the secrets of a sandbox are read once each, and revealed by variable", async () => {
  const asked: string[] = [];
  const resolver: SecretResolver = {
    resolve: async (name) => {
      asked.push(name);
      return new Secret(name, `value of ${name}`);
    },
  };
  const secrets = await resolveSecretRefs({ A: "one", B: "two", C: "one" }, resolver);
  expect(asked).toEqual(["one", "two"]);
  expect(revealEnvironment(secrets)).toEqual({ A: "value of one", B: "value of two", C: "value of one" });
  expect(inspect(secrets) + JSON.stringify(secrets)).not.toContain("value of");
});

test("a secret that cannot be read fails all of them", async () => {
  const resolver: SecretResolver = {
    resolve: async (name) => {
      if (name === "two") throw new Error("no two");
      return new Secret(name, "x");
    },
  };
  await expect(resolveSecretRefs({ A: "one", B: "two" }, resolver)).rejects.toThrow("no two");
});
