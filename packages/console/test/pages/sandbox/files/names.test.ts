import { expect, test } from "vitest";
import { crumbsOf, nameOf, nameProblem, normalizePath, parentOf } from "../../../../src/pages/sandbox/files/paths.ts";
import { isBroken, patternOf, plainName, typableName } from "../../../../src/pages/sandbox/files/visible-name.ts";

test.each([
  ["plain.txt", "plain.txt", "plain.txt"],
  ["a\nb\tc\u001B[31m", String.raw`a\nb\tc\x1b[31m`, "a_b_c_[31m"],
  ["invoice\u202Egnp.exe", "invoice[U+202E]gnp.exe", "invoice_gnp.exe"],
  [" both ends ", "␣both ends␣", " both ends "],
  ["a␣b", "a␣b", "a␣b"],
  ["zero\u200Bwidth\uFEFF", "zero[U+200B]width[U+FEFF]", "zero_width_"],
  ["bad\uFFFDbytes", "bad\uFFFDbytes", "bad_bytes"],
  ["half \uD83D", "half [U+D83D]", "half _"],
  ["👩‍👩‍👧 می‌خواهم", "👩‍👩‍👧 می‌خواهم", "👩‍👩‍👧 می‌خواهم"],
])("%j is seen as it is", (name, seen, typable) => {
  expect(plainName(name)).toBe(seen);
  expect(typableName(name)).toBe(typable);
  expect(isBroken(name)).toBe(name.includes("\uFFFD"));
});

test("typed paths are normalized", () => {
  expect(normalizePath("")).toBe("/");
  expect(normalizePath("//a/./b//../c/")).toBe("/a/c");
  expect(normalizePath("../../../b", "/a")).toBe("/b");
  expect(normalizePath("b", "/a")).toBe("/a/b");
  expect([parentOf("/a/b"), parentOf("/a"), parentOf("/")]).toEqual(["/a", "/", "/"]);
  expect([nameOf("/a/b"), nameOf("/")]).toEqual(["b", "/"]);
  expect(crumbsOf("/a/b")).toEqual([
    { name: "/", path: "/" },
    { name: "a", path: "/a" },
    { name: "b", path: "/a/b" },
  ]);
});

test("an invalid name is refused with the reason", () => {
  for (const name of ["", ".", "..", "a/b", "a\0", "ä".repeat(128)]) expect(nameProblem(name)).toBeDefined();
  for (const name of ["...", "-rf", "a\nb", "ä".repeat(127)]) expect(nameProblem(name)).toBeUndefined();
});

test("a pattern for a broken name escapes special characters", () => {
  expect(patternOf("a*[b]\uFFFD\uFFFDc?\\")).toBe(String.raw`a\*\[b\]?*c\?\\`);
});
