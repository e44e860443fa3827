import { SandboxerError } from "@sandboxer/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nearNames } from "../../src/suggest.ts";
import { pick } from "../../src/targets/match.ts";
import { parseRemotePath } from "../../src/targets/remote-path.ts";

const THREE = [
  { id: "aaaa1111", name: "web" },
  { id: "aaaa2222", name: "web-2" },
  { id: "bbbb3333", name: null },
];

const choose = (given: string, from: readonly { id: string; name: string | null }[] = THREE): string =>
  pick(given, from, "sandbox", "sandbox_not_found").id;

describe("a target", () => {
  test.each([
    ["aaaa1111", "aaaa1111"],
    ["web", "aaaa1111"],
    ["web-", "aaaa2222"],
    ["bb", "bbbb3333"],
    ["aaaa2", "aaaa2222"],
  ])("%s is %s", (given, id) => expect(choose(given)).toBe(id));

  test("that several begin with is an error that lists them", () => {
    expect(() => choose("aaaa")).toThrow(
      expect.objectContaining({
        code: "bad_request",
        message: '"aaaa" is ambiguous: 2 match.',
        hint: "Choose one sandbox: web (aaaa1111), web-2 (aaaa2222).",
      }),
    );
  });

  test("whose name two sandboxes have is ambiguous, even if it is also a prefix of others", () => {
    expect(() =>
      choose("x", [
        { id: "1", name: "x" },
        { id: "2", name: "x" },
      ]),
    ).toThrow(/ambiguous/);
  });

  test("that does not exist is an error with suggestions", () => {
    expect(() => choose("wbe")).toThrow(
      expect.objectContaining({ code: "sandbox_not_found", hint: "Did you mean web?" }),
    );
  });

  test("is only ever the named one: by its name or by a unique prefix", () => {
    const candidates = fc.uniqueArray(
      fc.record({
        id: fc.string({ unit: fc.constantFrom("0", "1", "a", "b"), minLength: 8, maxLength: 8 }),
        name: fc.option(fc.string({ minLength: 1, maxLength: 3 })),
      }),
      {
        selector: ({ id }) => id,
      },
    );
    fc.assert(
      fc.property(candidates, fc.string({ minLength: 1, maxLength: 3 }), (all, given) => {
        try {
          const { id, name } = pick(given, all, "sandbox", "sandbox_not_found");
          expect(id.startsWith(given) || (name?.startsWith(given) ?? false)).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(SandboxerError);
        }
      }),
    );
  });
});

test("near names are few letters away; others are not suggested", () => {
  expect(nearNames("chekpoint", ["checkpoint", "create", "cp"])).toEqual(["checkpoint"]);
  expect(nearNames("wbe", ["web", "database"])).toEqual(["web"]);
  expect(nearNames("xyz", ["web", "database"])).toEqual([]);
});

test("a path in a sandbox is parsed", () => {
  expect(parseRemotePath("web:/tmp/a:b")).toEqual({ sandbox: "web", path: "/tmp/a:b" });
  expect(parseRemotePath("./web:/tmp")).toBeUndefined();
  expect(parseRemotePath("/web:/tmp")).toBeUndefined();
  expect(parseRemotePath("plain.txt")).toBeUndefined();
  expect(() => parseRemotePath("web:tmp")).toThrow(
    expect.objectContaining({ hint: expect.stringContaining("web:/tmp") }),
  );
});
