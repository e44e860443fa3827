/** Checks of the chart that need no helm. `npm run test:kubernetes` renders it and runs it on a cluster. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { fileKey, SETTING_NAMES, variablesOf } from "../../packages/server/src/main/config-settings.ts";

const ROOT = join(import.meta.dirname, "../..");
const CHART = join(ROOT, "deploy/helm/sandboxer");
const read = (path: string): string => readFileSync(join(CHART, path), "utf8");

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly not?: { readonly anyOf: readonly { readonly required: readonly string[] }[] };
}
const schema = JSON.parse(read("values.schema.json")) as Schema;

/** Where the schema has properties of its own, `ingress.host`; elsewhere the value is passed on as it is. */
function namesIn({ properties = {} }: Schema, prefix = ""): string[] {
  return Object.entries(properties).flatMap(([name, inner]) =>
    inner.properties === undefined ? [`${prefix}${name}`] : namesIn(inner, `${prefix}${name}.`),
  );
}

test("the schema, the default values and the README name the same values", () => {
  // Helm itself adds it.
  const names = namesIn(schema).filter((name) => name !== "global");
  const values = parse(read("values.yaml")) as Record<string, unknown>;
  const has = (name: string): boolean =>
    name.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], values) !==
    undefined;
  expect(names.length).toBeGreaterThan(40);
  expect(names.filter((name) => !has(name))).toEqual([]);
  expect(names.filter((name) => !read("README.md").includes(`\`${name}\``))).toEqual([]);
  expect(Object.keys(values).filter((name) => !(name in (schema.properties ?? {})))).toEqual([]);
});

test("every variable and every setting that the chart names exists", () => {
  const known = new Set([...SETTING_NAMES.flatMap(variablesOf), "SANDBOXER_CONFIG"]);
  const templates = globSync("templates/*", { cwd: CHART }).map((path) => read(path));
  const used = templates.flatMap((text) => [...text.matchAll(/\bname: (SANDBOXER_\w+)/g)].map(([, name]) => name));
  expect(used).toContain("SANDBOXER_ADVERTISE_URL");
  expect(used.filter((name = "") => !known.has(name))).toEqual([]);

  const keys = new Set(SETTING_NAMES.map(fileKey));
  const own = schema.properties?.["config"]?.not?.anyOf.flatMap(({ required }) => required) ?? [];
  expect(own).toContain("advertise_url");
  expect(own.filter((name) => !keys.has(name))).toEqual([]);
});

test("the chart has the version of the packages", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  expect(parse(read("Chart.yaml"))).toMatchObject({ version, appVersion: version });
});
