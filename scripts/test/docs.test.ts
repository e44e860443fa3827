import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const MAX_WORDS = 1500;

const read = (page: string): string => readFileSync(join(ROOT, "docs", page), "utf8");
const pages = ["start", "guides", "reference", "explanation"].flatMap((kind) =>
  readdirSync(join(ROOT, "docs", kind)).map((name) => `${kind}/${name}`),
);

test("docs has pages of all four kinds, and the index links to every page", () => {
  const index = read("README.md");
  expect(pages.length).toBeGreaterThan(40);
  expect(pages.filter((page) => !index.includes(`](${page}`))).toEqual([]);
});

describe.each(pages)("%s", (page) => {
  const text = read(page);

  test("opens with a sentence on what it is for", () => {
    expect(text).toMatch(/^# .+\n\n(Use this (guide|page) |This page |In ten minutes )/);
  });

  if (page.startsWith("reference/")) return;
  test(`has at most ${MAX_WORDS} words`, () => {
    expect(text.split(/\s+/).length).toBeLessThanOrEqual(MAX_WORDS);
  });

  if (page.startsWith("explanation/")) return;
  test("says what you should see", () => expect(text).toMatch(/[Yy]ou should see/));
});
