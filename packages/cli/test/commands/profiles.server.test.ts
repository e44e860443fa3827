import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";

let base: string;
let folder: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "profiles-"));
  folder = join(base, "sandboxer", "profiles");
  mkdirSync(folder, { recursive: true });
});
afterEach(() => rmSync(base, { recursive: true }));

const write = (name: string, ...lines: string[]): void => writeFileSync(join(folder, name), `${lines.join("\n")}\n`);

async function run(...argv: string[]) {
  const io = fakeIo({ XDG_CONFIG_HOME: base });
  const code = await runProgram(["profiles", ...argv], io);
  return { code, out: io.out(), err: io.err(), json: () => JSON.parse(io.out()) as Record<string, never> };
}

test("list shows bundled and own profiles, for people and for programs", async () => {
  write("mine.yaml", "name: profile.mine", "description: |", "  two", "  lines", "backends: [gvisor, docker]");
  const { code, out } = await run("list");
  expect(code).toBe(0);
  expect(out).toMatch(/^name +backend +ttl +from +description\n/);
  expect(out).toMatch(/\nprofile\.gvisor-default +gvisor +4h +bundled +A sandbox/);
  expect(out).toContain(`profile.mine                gvisor, docker   none  ${folder}/mine.yaml`);
  expect(out).toContain("two lines\n");
  const { profiles } = (await run("ls", "--json")).json();
  expect(profiles).toContainEqual({
    name: "profile.mine",
    description: "two\nlines\n",
    backends: ["gvisor", "docker"],
    source: { file: join(folder, "mine.yaml"), bundled: false, overrides: null },
  });
});

test("get prints the file unchanged, so that it can be copied and edited", async () => {
  const { code, out, err } = await run("get", "profile.compose-e2e");
  expect(code).toBe(0);
  expect(out).toMatch(/^name: profile\.compose-e2e\n/);
  expect(err).toMatch(/^From .*compose-e2e\.yaml\n$/);
  write("mine.yaml", ...out.split("\n"));
  const changed = (await run("get", "profile.compose-e2e", "--json")).json();
  expect(changed).toMatchObject({
    extension: "ext.compose-ssh",
    source: { file: join(folder, "mine.yaml"), bundled: false, overrides: expect.stringContaining("compose-e2e.yaml") },
  });
});

test("an unknown name exits with the code of the table, and suggests a similar name", async () => {
  const { code, out, err } = await run("get", "compose-e2e");
  expect(code).toBe(4);
  expect(out + err).toContain("Did you mean profile.compose-e2e?");
});

test("an invalid profile fails the list and names its line", async () => {
  write("mine.yaml", "name: profile.mine", "backend: gvisor");
  const { code, out, err } = await run("list");
  expect(code).toBe(2);
  expect(out + err).toContain("mine.yaml:2:1: backend: there is no such key. Did you mean backends?");
});

describe("check", () => {
  test("reports every problem, one line each, and fails", async () => {
    write("a.yaml", "name: profile.a", "backends: [gvisor]", "ttl: {max: 4hours}", "netwrk: none");
    write("b.yaml", "name: profile.b", "backends: [gvisor]");
    const { code, out, err } = await run("check");
    expect(code).toBe(2);
    expect(out.split("\n")).toEqual([
      expect.stringContaining(`${folder}/a.yaml:3:12: ttl.max: is not a duration.`),
      `${folder}/a.yaml:4:1: netwrk: there is no such key. Did you mean network?`,
      `${folder}/b.yaml: profile.b is valid.`,
      "",
    ]);
    expect(err).toBe("1 of 2 have errors.\n");
    const json = (await run("check", "--json")).json();
    expect(json).toMatchObject({
      ok: false,
      files: [
        {
          file: join(folder, "a.yaml"),
          name: null,
          problems: [
            { line: 3, column: 12 },
            { line: 4, column: 1 },
          ],
        },
        { file: join(folder, "b.yaml"), name: "profile.b", problems: [], warnings: [] },
      ],
    });
  });

  test("accepts files and folders, relative to the working folder", async () => {
    write("a.yaml", "name: profile.a", "backends: [gvisor]");
    expect((await run("check", join(folder, "a.yaml"))).code).toBe(0);
    expect((await run("check", folder)).err).toBe("1 checked, no errors.\n");
    const missing = await run("check", "none.yaml");
    expect(missing.code).toBe(2);
    expect(missing.out).toBe("/somewhere/none.yaml: does not exist.\n");
    expect((await run("check", folder, join(folder, "a.yaml"))).out).toContain("is also the name of the profile");
  });

  test("warns of a secret that the config file does not define", async () => {
    write("a.yaml", "name: profile.a", "backends: [gvisor]", "secret_refs: {TOKEN: github, OTHER: other}");
    writeFileSync(join(base, "sandboxer", "config.yaml"), "secrets: {other: {environment: X}}\n");
    const { code, out } = await run("check");
    expect(code).toBe(0);
    expect(out).toContain("a.yaml: warning: secret_refs.TOKEN: the config file on this machine has no secret github.");
    expect(out).not.toContain("OTHER");
  });

  test("an empty folder is reported as empty, and a missing named folder is refused", async () => {
    expect(await run("check")).toMatchObject({ code: 0, out: "", err: `No profiles found in ${folder}.\n` });
    const { code, out, err } = await run("check", "--profiles-directory", join(base, "none"));
    expect(code).toBe(2);
    expect(out + err).toContain("flag --profiles-directory: the folder");
  });
});

test("a server does not start with an invalid profile", async () => {
  write("mine.yaml", "name: profile.mine", "backend: gvisor");
  const io = fakeIo({ XDG_CONFIG_HOME: base, SANDBOXER_DATA_DIRECTORY: base });
  expect(await runProgram(["serve", "--backend", "fake", "--port", "0", "--log-level", "silent"], io)).toBe(2);
  expect(io.err()).toContain("mine.yaml:2:1: backend: there is no such key. Did you mean backends?");
});

test("another folder can be named", async () => {
  const other = join(base, "other");
  mkdirSync(other);
  writeFileSync(
    join(other, "x.yaml"),
    readFileSync(new URL("../../../server/profiles/saas-stub.yaml", import.meta.url)),
  );
  const { out } = await run("list", "--profiles-directory", other);
  expect(out).toContain(`${other}/x.yaml`);
});
