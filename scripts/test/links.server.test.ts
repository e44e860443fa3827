import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const files = execFileSync("git", ["ls-files", "-z", "*.md"], { cwd: ROOT, encoding: "utf8" })
  .split("\0")
  .filter(Boolean);
const pages = new Map(files.map((file) => [file, withoutCode(readFileSync(join(ROOT, file), "utf8"))]));

/** Where a link of a page leads: a file of the repository, and maybe a heading in it. */
interface Link {
  readonly text: string;
  readonly file: string;
  readonly heading: string | undefined;
}

function linksOf(page: string, text: string): readonly Link[] {
  return [...text.matchAll(/\]\(([^()\s]+(?:\([^()\s]*\))?)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = "", heading] = decodeURI(target).split("#");
      return { text: target, heading, file: path === "" ? page : relative(ROOT, join(ROOT, dirname(page), path)) };
    });
}

/** As GitHub makes them: lower case, no punctuation, dashes for spaces, numbered where they repeat. */
function anchorsOf(text: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const anchors = new Set<string>();
  for (const [, heading = ""] of text.matchAll(/^#{1,6} +(.+)$/gm)) {
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = plain
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(" ", "-");
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    anchors.add(count === 0 ? anchor : `${anchor}-${count}`);
  }
  return anchors;
}

function withoutCode(text: string): string {
  return text
    .replaceAll(/^(```|~~~)[\s\S]*?^\1/gm, "")
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ""));
}

test.each([...pages])("every link of %s leads somewhere", (page, text) => {
  const dead = linksOf(page, text).filter(({ file, heading }) => {
    if (!existsSync(join(ROOT, file))) return true;
    const target = pages.get(file);
    return heading !== undefined && target !== undefined && !anchorsOf(target).has(heading);
  });
  expect(dead.map((link) => link.text)).toEqual([]);
});

test("every page that a text of the sources names exists", () => {
  const named = execFileSync("git", ["grep", "-ohE", "docs/[a-z]+/[A-Za-z0-9-]+[.]md", "--", "packages/*/src/*"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  const paths = [...new Set(named.trim().split("\n"))];
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
