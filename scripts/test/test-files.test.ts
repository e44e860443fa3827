import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import {
  problemsWithKit,
  problemsWithNames,
  problemWithImports,
  problemWithSleeps,
  testFiles,
} from "../testing/test-files.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FILES = testFiles(ROOT);

test("every file of tests is in a suite, and its folder mirrors src", () => {
  expect(FILES.length).toBeGreaterThan(400);
  expect(problemsWithNames(ROOT, FILES)).toEqual([]);
});

test("unit tests start no server and no process", () => {
  expect(FILES.flatMap((path) => problemWithImports(ROOT, path) ?? [])).toEqual([]);
});

test("tests wait for conditions, not for a fixed time", () => {
  expect(FILES.flatMap((path) => problemWithSleeps(ROOT, path) ?? [])).toEqual([]);
  const source = ["await new Promise((resolve) => set", "Timeout(resolve, 200));"].join("");
  const root = repository({ "test/a.test.ts": source, "test/b.test.ts": source.replace("200", "0") });
  expect(problemWithSleeps(root, "test/a.test.ts")).toMatch(/use eventually or meanwhile/);
  expect(problemWithSleeps(root, "test/b.test.ts")).toBe(undefined);
});

test("the kit imports nothing from a package's own tests", () => {
  expect(problemsWithKit(ROOT)).toEqual([]);
  const source = 'import { helper } from "../../packages/p/test/support/helper.ts";';
  expect(problemsWithKit(repository({ "test/kit/a.ts": source }))).toEqual([
    expect.stringMatching(/Move that into test\/kit/),
  ]);
});

test.each([
  ["packages/p/test/x.crahs.test.ts", /no suite is called "crahs"/],
  ["packages/p/src/x.test.ts", /no suite looks there/],
  ["packages/p/test/x.spec.ts", /no suite looks there/],
  ["packages/p/test/x.test.mjs", /no suite looks there/],
  ["packages/p/test/other/x.test.ts", /src has no other/],
  ["packages/p/test/room/deep/deeper/x.test.ts", /src has no room\/deep\/deeper/],
])("%s is refused", (path, problem) => {
  const root = repository({ [path]: "", "packages/p/src/room/x.ts": "" });
  expect(problemsWithNames(root, testFiles(root))).toEqual([expect.stringMatching(problem)]);
});

test.each([
  "packages/p/test/room/x.gvisor.test.ts",
  "packages/p/test/room/deep/x.test.ts",
  "scripts/test/a/x.server.test.ts",
])("%s is accepted", (path) => {
  const root = repository({ [path]: "", "packages/p/src/room/x.ts": "" });
  expect(problemsWithNames(root, testFiles(root))).toEqual([]);
});

test.each([
  ["a process", 'import { spawn } from "node:child_process";'],
  ["a server of the kit", 'import { startServer } from "../../../test/kit/server/test-server.ts";'],
  ["a server, through a helper", 'import { helper } from "./support/helper.ts";'],
  ["a server, when it runs", `await import(${JSON.stringify("@sandboxer/server")});`],
])("a unit test with %s is refused, and accepted as a test of servers", (_, source) => {
  const helper = 'export { startServer as helper } from "../../../../test/kit/server/test-server.ts";';
  const root = repository({
    "packages/p/test/x.test.ts": source,
    "packages/p/test/y.server.test.ts": source,
    "packages/p/test/support/helper.ts": helper,
    "test/kit/server/test-server.ts": "",
  });
  expect(problemWithImports(root, "packages/p/test/x.test.ts")).toMatch(/imports .*Call it .*x\.server\.test\.ts/);
  expect(problemWithImports(root, "packages/p/test/y.server.test.ts")).toBe(undefined);
});

test("a unit test may import the types of a server", () => {
  const root = repository({ "packages/p/test/x.test.ts": 'import type { Server } from "@sandboxer/server";' });
  expect(problemWithImports(root, "packages/p/test/x.test.ts")).toBe(undefined);
});

function repository(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "sandboxer-test-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}
