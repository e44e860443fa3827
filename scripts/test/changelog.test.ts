import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { newestSection, problemsOf } from "../release/changelog.ts";
import { filesAtVersion } from "../release/versions.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

test("the changelog names its areas, and every package has its version", () => {
  const section = newestSection(readFileSync(`${ROOT}CHANGELOG.md`, "utf8"));
  expect(problemsOf(section)).toEqual([]);
  expect([...filesAtVersion(ROOT, section.version).keys()]).toEqual([]);
});

test.each([
  ["- An entry.", ["It has no areas."]],
  ["### CLI\n- One.\n\n### Colours\n- Two.", ["It has an unknown area: Colours."]],
  ["### Console\n- One.\n\n### CLI\n- Two.", ["Its areas must appear once each, in this order: CLI, Console."]],
  ["### CLI\n- One.\n\n### CLI\n- Two.", ["Its areas must appear once each, in this order: CLI."]],
  ["Words.\n\n- Stray.\n\n### CLI\n- One.", ["This entry is in no area: - Stray."]],
  ["### CLI\n\n### Console\n- One.", ["The area CLI has no entries."]],
  ["Words.\n\n### CLI\n- One.\n\n### Console\n- Two.", []],
])("mistakes in the section %j are reported", (text, problems) => {
  expect(problemsOf({ version: "1.0.0", date: "unreleased", text })).toEqual(problems);
});

test.each(["", "# Changelog\n\n- An entry.", "## Soon\n- An entry."])("%j is no changelog", (text) => {
  expect(() => newestSection(text)).toThrow("must begin with a heading");
});
