import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { LONG_FILES, longestFirst } from "../testing/longest-first.ts";
import { TEST_FOLDERS } from "../testing/suffixes.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

test("the named files exist", () => {
  const files = globSync(`${TEST_FOLDERS}/**/*.test.ts`, { cwd: ROOT }).map((path) => `/${path}`);
  expect(LONG_FILES.filter((end) => !files.some((path) => path.endsWith(`/${end}`)))).toEqual([]);
});

test("the named files come first, and the others keep their order", () => {
  const files = ["/z.test.ts", "/a.test.ts", `/p/${LONG_FILES[1]}`, "/b.test.ts", `/p/${LONG_FILES[0]}`];
  expect(longestFirst(files, (path) => path)).toEqual([
    `/p/${LONG_FILES[0]}`,
    `/p/${LONG_FILES[1]}`,
    "/z.test.ts",
    "/a.test.ts",
    "/b.test.ts",
  ]);
});
