import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { profileSchema } from "@sandboxer/protocol";
import { fileKey, flagName, SETTING_NAMES, variablesOf } from "../../src/main/config-settings.ts";
import { parseConfig } from "../../src/main/config.ts";
import { readProfile } from "../../src/profiles/read-profile.ts";

const document = (name: string): string =>
  readFileSync(new URL(`../../../../docs/reference/${name}`, import.meta.url), "utf8");
const configuration = document("configuration.md");
const profiles = document("profiles.md");

function blocks(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, "g"))].map(([, block = ""]) => block);
}

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "docs-"))));
afterAll(() => rmSync(folder, { recursive: true }));

test.each(SETTING_NAMES)("configuration.md has a row for %s", (name) => {
  const key = fileKey(name);
  const [first, second] = [key === undefined ? "" : `\`${key}\``, key === undefined ? "" : `\`${flagName(name)}\``];
  const variables = variablesOf(name)
    .map((variable) => `\`${variable}\``)
    .join(", ");
  const row = ["", first, second, variables].join(" | ").trim().replaceAll("|  |", "| |");
  expect(configuration).toContain(`\n${row.replaceAll(/ +/g, " ")} |`);
});

test("the YAML and TOML examples of configuration.md mean the same", () => {
  const [yaml = "", toml = ""] = [...blocks(configuration, "yaml"), ...blocks(configuration, "toml")];
  const [first, second] = [
    ["config.yaml", yaml],
    ["config.toml", toml],
  ].map(([name = "", text = ""]) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    const {
      layers: _,
      origins: __,
      configFile: ___,
      ...values
    } = parseConfig({
      flags: { config: path },
      env: {},
      homeDirectory: "/home/ada",
    });
    return values;
  });
  expect(first).toMatchObject({
    maxSandboxes: 40,
    secrets: { github: { file: "/home/ada/.secrets/github-token" }, npm: { environment: "NPM_TOKEN" } },
  });
  expect(second).toEqual(first);
});

test("the example of profiles.md is right", () => {
  const path = join(folder, "profile.yaml");
  const [example = ""] = blocks(profiles, "yaml");
  writeFileSync(path, example);
  expect(readProfile(path)).toMatchObject({ problems: [], profile: { name: "profile.web-tests" } });
});

test.each(Object.keys(profileSchema.shape))("profiles.md explains %s", (key) => {
  expect(profiles.slice(profiles.indexOf("| key |"))).toMatch(new RegExp(`^\\|.*\`${key}[\`.]`, "m"));
});
