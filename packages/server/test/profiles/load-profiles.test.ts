import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SandboxerError } from "@sandboxer/protocol";
import { loadProfiles } from "../../src/profiles/load-profiles.ts";

const BUNDLED = [
  "profile.compose-checkpoint",
  "profile.compose-e2e",
  "profile.docker-default",
  "profile.gvisor-default",
  "profile.saas-stub",
];

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "profiles-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
const load = () => loadProfiles({ directories: [folder] });

async function problems(): Promise<string[]> {
  try {
    await load();
    return [];
  } catch (error) {
    expect(error).toMatchObject({ code: "bad_request", hint: expect.stringContaining("profiles check") });
    return (error as SandboxerError).message
      .split("\n")
      .slice(1)
      .map((line) => line.trim().replace(`${folder}/`, ""));
  }
}

test("the bundled profiles are right, also where there is no folder of the user", async () => {
  const catalog = await loadProfiles({ directories: [join(folder, "none")] });
  expect(catalog.list().map(({ name }) => name)).toEqual(BUNDLED);
  expect(catalog.get("profile.compose-e2e")).toMatchObject({
    extension: "ext.compose-ssh",
    inputs: { repo: { required: true } },
  });
  expect(catalog.entry("profile.gvisor-default")).toMatchObject({ bundled: true, overrides: undefined });
});

test("a user's profile joins them, and one of the same name replaces a bundled one", async () => {
  write("mine.yaml", "name: profile.mine\nbackends: [gvisor, docker]\nstrategy: lowest-cost\n");
  write("other.yml", "name: profile.gvisor-default\nbackends: [gvisor]\nttl: {max: 1h}\n");
  write("notes.txt", "no profile");
  write(".hidden.yaml", "no profile");
  const catalog = await load();
  expect(catalog.list().map(({ name }) => name)).toEqual([...BUNDLED, "profile.mine"].toSorted());
  expect(catalog.get("profile.gvisor-default")).toEqual({
    name: "profile.gvisor-default",
    backends: ["gvisor"],
    ttl: { max: "1h" },
  });
  expect(catalog.entry("profile.gvisor-default")).toMatchObject({
    bundled: false,
    file: join(folder, "other.yml"),
    overrides: expect.stringMatching(/profiles\/gvisor-default\.yaml$/),
  });
});

test.each([
  ["profile.compose-e2", "Did you mean profile.compose-e2e?"],
  ["gvisor-default", "Did you mean profile.gvisor-default?"],
])("an unknown profile %s is refused, naming the near one", async (name, expected) => {
  const catalog = await load();
  expect(() => catalog.get(name)).toThrow(
    expect.objectContaining({ code: "profile_not_found", message: expect.stringContaining(expected) }),
  );
});

test.each(["", "zzz", "__proto__", "constructor"])("%j is not a profile", async (name) => {
  const catalog = await load();
  expect(() => catalog.get(name)).toThrow(expect.objectContaining({ code: "profile_not_found" }));
});

describe("mistakes", () => {
  test("are all reported at once, for all files, with line and column", async () => {
    write("a.yaml", "name: profile.a\nbackend: gvisor\nttl:\n  max: 4hours\n  defalt: 1h\nresources:\n  memory: 5\n");
    write("b.yaml", "name: [\n");
    write("c.yaml", "name: Profile C\nextension: compose-ssh\nbackends: [gvisor]\nnetwork: host\n");
    expect(await problems()).toEqual([
      "a.yaml:1:1: backends: needs exactly one of extension and backends.",
      "a.yaml:2:1: backend: there is no such key. Did you mean backends?",
      expect.stringMatching(/^a\.yaml:4:8: ttl\.max: is not a duration\. Write a positive integer/),
      "a.yaml:5:3: ttl.defalt: there is no such key. Did you mean default?",
      "a.yaml:7:3: resources.memory: there is no such key. Did you mean memory_mb?",
      expect.stringMatching(/^b\.yaml:\d:\d+: /),
      expect.stringMatching(/^c\.yaml:1:7: name: must be lower-case words/),
      expect.stringMatching(/^c\.yaml:2:12: extension: must be ext\. and a name/),
      "c.yaml:3:11: backends: needs exactly one of extension and backends.",
      'c.yaml:4:10: network: must be "none", "open", or an object with allow and deny lists.',
    ]);
  });

  test.each([
    ["ttl: {default: 2h, max: 1h}", "ttl.default: is longer than ttl.max"],
    ["env: {A: x}\nsecret_refs: {A: y}", "2:18: secret_refs.A: is also in env"],
    ["secret_refs: {A: ghp_LIVE}", "secret_refs.A: must be the name of a secret"],
    ["secret_refs: {A-B: y}", "secret_refs.A-B: is not a valid variable name"],
    ["inputs: {repo: {required: true, default: x}}", "inputs.repo.required: has no effect with a default"],
    ["inputs: {repo: {requird: true}}", "inputs.repo.requird: there is no such key. Did you mean required?"],
    ["enable_sandbox_handoff: true", "enable_sandbox_handoff: needs enable_checkpoint: true"],
    ["on_disconnect: checkpoint", "on_disconnect: needs enable_checkpoint: true"],
    ["setup: make", "setup: must be a list"],
    ["resources: {memory_mb: 1}", "resources.memory_mb: Too small"],
    [
      "isolation: gviser",
      "isolation: must be one of gvisor, container, virtual-machine, remote-host, none. Did you mean gvisor?",
    ],
  ])("%s", async (text, expected) => {
    write("a.yaml", `${text}\nname: profile.a\nbackends: [gvisor]\n`);
    const found = await problems();
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(expected);
    expect(found[0]).not.toContain("LIVE");
  });

  test.each([
    ["backends: [gvisor, gvisor]", "name each backend once"],
    ["backends: []", "backends: "],
    ["extension: ext.x\nstrategy: explicit", "strategy: chooses between backends"],
  ])("%s", async (text, expected) => {
    write("a.yaml", `name: profile.a\n${text}\n`);
    expect((await problems()).join()).toContain(expected);
  });

  test("two files of one folder with the same name", async () => {
    for (const name of ["a.yaml", "b.yaml"]) write(name, "name: profile.same\nbackends: [gvisor]\n");
    expect(await problems()).toEqual([expect.stringMatching(/^b\.yaml: profile\.same is also the name.*a\.yaml\.$/)]);
  });

  test("a folder in place of a file, a file in place of the folder", async () => {
    mkdirSync(join(folder, "a.yaml"));
    expect(await problems()).toEqual(["a.yaml: is not a file."]);
    write("plain", "");
    await expect(loadProfiles({ directories: [join(folder, "plain")] })).rejects.toThrow(/plain: is not a folder/);
  });
});

test("numbers are texts in env and placement, as written", async () => {
  write("a.yaml", "name: profile.a\nbackends: [gvisor]\nenv: {V: 1.10}\nplacement: {port: 0022}\n");
  expect((await load()).get("profile.a")).toMatchObject({ env: { V: "1.10" }, placement: { port: "0022" } });
});
