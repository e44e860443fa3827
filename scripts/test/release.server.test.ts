import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { longSubjects } from "../release/history.ts";

const PYTHON_VERSION = "clients/python/src/sandboxer/_version.py";
const CHART = "deploy/helm/sandboxer/Chart.yaml";
const SCRIPT = fileURLToPath(new URL("../release.ts", import.meta.url));
const SECTION = "### CLI\n- `sandboxer ls` is faster.\n\n### Console\n- The console is blue.";
const CHANGELOG = `# Changelog\n\n## 1.3.0, unreleased\n${SECTION}\n\n## 1.2.0, 2026-01-01\n### CLI\n- Old.\n`;

test("a dry run lists the steps of a release, and changes nothing", () => {
  const { root, git, release } = repository();
  const before = [git("rev-parse", "HEAD"), git("tag"), git("status", "--porcelain")];
  const { status, stdout } = release("--dry-run");
  expect(stdout).toContain("Release 1.3.0 (dry run: nothing is changed), after v1.2.0\n");
  expect(stdout).toContain("would write packages/a/package.json\n");
  expect(stdout).toContain('would commit "Release 1.3.0" and tag it v1.3.0');
  expect(stdout).toContain(SECTION);
  expect(stdout).not.toContain("- Old.");
  expect(stdout).toMatch(/^Packages: .*@sandboxer\/mcp, .*@sandboxer\/cli, and sandboxer for Python\.$/m);
  expect(status).toBe(0);
  expect([git("rev-parse", "HEAD"), git("tag"), git("status", "--porcelain")]).toEqual(before);
  expect(JSON.parse(readFileSync(join(root, "package.json"), "utf8"))).toMatchObject({ version: "1.2.0" });
});

test("a release gives all packages one version, dates the changelog, commits and tags", () => {
  const { root, git, release } = repository();
  const { status, stdout } = release();
  expect({ status, stdout }).toMatchObject({ status: 0 });
  const json = (path: string): unknown => JSON.parse(readFileSync(join(root, path), "utf8"));
  expect(json("package.json")).toMatchObject({ version: "1.3.0" });
  expect(json("packages/a/package.json")).toMatchObject({ version: "1.3.0" });
  expect(readFileSync(join(root, PYTHON_VERSION), "utf8")).toBe('__version__ = "1.3.0"\n');
  expect(readFileSync(join(root, CHART), "utf8")).toBe("apiVersion: v2\nversion: 1.3.0\nappVersion: 1.3.0\n");
  expect(json("packages/b/package.json")).toMatchObject({
    version: "1.3.0",
    dependencies: { "@x/a": "1.3.0", other: "1.2.0" },
  });
  expect(json("package-lock.json")).toMatchObject({
    version: "1.3.0",
    packages: { "packages/b": { version: "1.3.0", dependencies: { "@x/a": "1.3.0" } } },
  });
  expect(readFileSync(join(root, "CHANGELOG.md"), "utf8")).toMatch(/^## 1\.3\.0, \d{4}-\d\d-\d\d$/m);
  expect(git("log", "-1", "--format=%s")).toBe("Release 1.3.0");
  expect(git("rev-list", "-1", "v1.3.0")).toBe(git("rev-parse", "HEAD"));
  expect(git("tag", "--list", "--format=%(contents)", "v1.3.0")).toContain(SECTION);
  expect(git("status", "--porcelain")).toBe("");
  expect(release().stdout).toContain("problem: 1.3.0 was released on ");
});

test("a refused release lists every obstacle", () => {
  const { root, git, release } = repository();
  const subject = "A subject that goes on and on, past the end of the line that a forge shows";
  git("commit", "--allow-empty", "--quiet", "--message", subject);
  git("switch", "--quiet", "--create", "side");
  writeFileSync(join(root, "CHANGELOG.md"), CHANGELOG.replace("### Console", "### Colours"));
  const { status, stdout } = release();
  expect(stdout.match(/^problem: .*$/gm)).toEqual([
    "problem: CHANGELOG.md, 1.3.0: It has an unknown area: Colours.",
    expect.stringMatching(/^problem: A subject is longer than 72 characters: [0-9a-f]+ A subject that goes on/),
    "problem: The working tree has changes. Commit them first.",
    "problem: The current branch is not main.",
  ]);
  expect(stdout).toContain("Nothing was changed.");
  expect(status).toBe(1);
});

test("subjects count since the last release", () => {
  const { root, git } = repository();
  expect(longSubjects(root)).toEqual([]);
  git("commit", "--allow-empty", "--quiet", "--message", `${"x".repeat(72)}\n\n${"A long body. ".repeat(20)}`);
  git("switch", "--quiet", "--create", "side");
  git("commit", "--allow-empty", "--quiet", "--message", "Short");
  git("switch", "--quiet", "-");
  git("merge", "--quiet", "--no-ff", "--message", `Merge ${"0".repeat(40)} into ${"1".repeat(40)}`, "side");
  expect(longSubjects(root)).toEqual([]);
  git("commit", "--allow-empty", "--quiet", "--message", "y".repeat(73));
  expect(longSubjects(root)).toEqual([expect.stringMatching(/^[0-9a-f]+ y{73}$/)]);
});

function repository() {
  const root = mkdtempSync(join(tmpdir(), "sandboxer-test-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const git = (...args: readonly string[]): string =>
    execFileSync("git", args, { cwd: root, encoding: "utf8", env: gitEnvironment() }).trim();
  const a = { name: "@x/a", version: "1.2.0" };
  const b = { name: "@x/b", version: "1.2.0", dependencies: { "@x/a": "1.2.0", other: "1.2.0" } };
  const whole = { name: "whole", version: "1.2.0" };
  const files = {
    "package.json": whole,
    "packages/a/package.json": a,
    "packages/b/package.json": b,
    "package-lock.json": { ...whole, packages: { "": whole, "packages/a": a, "packages/b": b } },
  };
  for (const [path, value] of Object.entries(files)) {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), `${JSON.stringify(value, undefined, 2)}\n`);
  }
  writeFileSync(join(root, "CHANGELOG.md"), CHANGELOG);
  mkdirSync(join(root, PYTHON_VERSION, ".."), { recursive: true });
  writeFileSync(join(root, PYTHON_VERSION), '__version__ = "1.2.0"\n');
  mkdirSync(join(root, CHART, ".."), { recursive: true });
  writeFileSync(join(root, CHART), "apiVersion: v2\nversion: 1.2.0\nappVersion: 1.2.0\n");
  git("init", "--quiet", "--initial-branch", "main");
  git("add", "--all");
  git(
    "commit",
    "--quiet",
    "--message",
    "A subject before the first release, which may be as long as its author likes it",
  );
  git("tag", "v1.2.0");
  const release = (...flags: readonly string[]) =>
    spawnSync(process.execPath, [SCRIPT, "--root", root, ...flags], { encoding: "utf8", env: gitEnvironment() });
  return { root, git, release };
}

/** A name for commits, and no settings of the user who runs the tests. */
function gitEnvironment(): NodeJS.ProcessEnv {
  const who = { NAME: "Tests", EMAIL: "tests@example.com" };
  return {
    PATH: process.env["PATH"],
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_SYSTEM: "/dev/null",
    ...Object.fromEntries(
      Object.entries(who).flatMap(([key, value]) =>
        ["AUTHOR", "COMMITTER"].map((role) => [`GIT_${role}_${key}`, value]),
      ),
    ),
  };
}
