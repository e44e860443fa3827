import { execFile } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "sandboxer-docs-"));
let pages: readonly { readonly name: string; readonly html: string }[] = [];

beforeAll(async () => {
  const build = [join(ROOT, "node_modules/vitepress/bin/vitepress.js"), "build", "docs", "--outDir", folder];
  await promisify(execFile)(process.execPath, build, { cwd: ROOT });
  pages = globSync("**/*.html", { cwd: folder }).map((name) => ({
    name,
    html: readFileSync(join(folder, name), "utf8"),
  }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const found = (pattern: RegExp): string[] =>
  pages.flatMap(({ name, html }) => [...html.matchAll(pattern)].map(([text]) => `${name}: ${text.slice(0, 100)}`));

test("the site has a page for every page of docs, and an index for search", () => {
  const sources = globSync("{start,guides,reference,explanation,decisions}/*.md", { cwd: join(ROOT, "docs") });
  const built = new Set(pages.map(({ name }) => name));
  const expected = sources.map((source) => source.replace("README.md", "index.md").replace(/\.md$/, ".html"));
  expect(expected.filter((name) => !built.has(name))).toEqual([]);
  expect(globSync("assets/chunks/*localSearchIndex*.js", { cwd: folder })).toHaveLength(1);
});

test("pages keep to the server's policy: no inline scripts or styles, and nothing from other hosts", () => {
  expect(found(/<script(?![^>]* src=)[^>]*>/g)).toEqual([]);
  expect(found(/<style\b|<[a-z][^>]* style=/g)).toEqual([]);
  expect(found(/<(script|img|link)[^>]* (src|href)="(https?:)?\/\/[^"]*"/g)).toEqual([]);
});

test("every link of the site leads to a file that it has", () => {
  const dead = pages.flatMap(({ name, html }) =>
    [...html.matchAll(/ (?:href|src)="(\/[^"#]*)(?:#[^"]*)?"/g)]
      .map(([, target = ""]) => decodeURI(target))
      .filter((target) => {
        const file = join(folder, target.replace(/^\/docs/, ""));
        const isThere = target.endsWith("/")
          ? existsSync(join(file, "index.html"))
          : existsSync(file) || existsSync(`${file}.html`);
        return !target.startsWith("/docs/") || !isThere;
      })
      .map((target) => `${name}: ${target}`),
  );
  expect(dead).toEqual([]);
});
