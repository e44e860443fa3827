import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "vitest/node";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const SELF = "scripts/test/plain-english.test.ts";
const SOURCES = ["packages/*/src/**/*.{ts,tsx}", "scripts/*.{ts,mjs}", "bench/**/*.ts"];

/** Openers that make a reader solve a riddle: "Who has a key", "One that is damaged", "Of those, …". */
const OPENER = /(?:^|[.!?]\s+)(?:What|Who|Whom|Whose|One that|One of which|Of|Those that|Those of)\s/;
const OPENER_ANYWHERE = /\b(?:What|Who|Whom|Whose|One that|One of which|Of|Those that|Those of)\s/;
/** Words that plain English has a common word for. */
const WORDS =
  /\b(?:anew|(?:is|are) gone|goes? on|going on|put down|taken? up|takes up|not told|hurts?|whom|whoever|told once|under way|sleeps|woken|unless told otherwise|(?:is|are|past) its time|for good)\b/;
/** Names of tests are statements. They begin in lower case, and may continue the name of their group ("of a …"). */
const TITLE_OPENER = /^(?:what|who|whom|whoever|one (?:that|whose|of which)|those (?:that|who|of))\s/i;
const TITLE =
  /\b(?:describe\w*|it|test)(?:\.\w+)*(?:\((?:[^()]|\([^()]*\))*\))?\(\s*(["'`])((?:\\.|(?!\1)[^\\])+)\1\s*,/g;
/** Texts that clients compare, so that they stay as they are (protocol.md). */
const FIXED: readonly string[] = [];

interface Node {
  readonly type: string;
  readonly start: number;
  readonly value?: unknown;
  readonly quasis?: readonly { readonly value: { readonly cooked: string | null } }[];
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
}

/** The text that a person can read in a node: a string, a template with `…` for its values, or text between tags. */
function textOf(node: Node): string | undefined {
  if (node.type === "TemplateLiteral") return node.quasis?.map(({ value }) => value.cooked ?? "").join("…");
  if (node.type !== "Literal" && node.type !== "JSXText") return undefined;
  return typeof node.value === "string" ? node.value : undefined;
}

function textsIn(value: unknown, found: { at: number; text: string }[] = []): typeof found {
  if (Array.isArray(value)) for (const each of value) textsIn(each, found);
  if (!isNode(value)) return found;
  const text = textOf(value)?.replaceAll(/\s+/g, " ").trim();
  // A single word is a name, not a sentence.
  if (text?.includes(" ")) found.push({ at: value.start, text });
  for (const child of Object.values(value)) textsIn(child, found);
  return found;
}

function oddTextsIn(file: string, source: string): string[] {
  // Parsing is slow, and most files have none of the words outside of comments.
  const code = source.replaceAll(/^\s*(?:\/\*[^]*?\*\/|\/\/.*$)/gm, "");
  if (!OPENER_ANYWHERE.test(code) && !WORDS.test(code)) return [];
  const texts = textsIn(parseAst(source, { lang: file.endsWith("x") ? "tsx" : "ts" }, file));
  return texts
    .filter(({ text }) => !FIXED.includes(text) && (OPENER.test(text) || WORDS.test(text)))
    .map(({ at, text }) => `${file}:${source.slice(0, at).split("\n").length}: ${text}`);
}

test("texts that people read have no riddle openers and no odd words", () => {
  const files = SOURCES.flatMap((pattern) => globSync(pattern, { cwd: ROOT }));
  expect(files.length).toBeGreaterThan(50);
  expect(files.flatMap((file) => oddTextsIn(file, readFileSync(join(ROOT, file), "utf8")))).toEqual([]);
});

/** The texts of a module in Python that people read: its docstrings, and its strings with several words. */
function oddPythonTextsIn(file: string, source: string): string[] {
  const texts = Array.from(
    source.matchAll(/"""([^]*?)"""|"((?:\\.|[^"\\\n])+)"/g),
    ([, long, short]) => long ?? short ?? "",
  );
  return texts
    .map((text) => text.replaceAll(/\s+/g, " ").trim())
    .filter((text) => text.includes(" ") && (OPENER.test(text) || WORDS.test(text)))
    .map((text) => `${file}: ${text}`);
}

test("texts of the Python SDK have no riddle openers and no odd words", () => {
  const files = globSync("clients/python/src/**/*.py", { cwd: ROOT });
  expect(files.length).toBeGreaterThan(10);
  expect(files.flatMap((file) => oddPythonTextsIn(file, readFileSync(join(ROOT, file), "utf8")))).toEqual([]);
});

test.each(['def f():\n    """What can fail."""', 'raise Missing(f"The sandbox {id} is gone.")'])(
  "%s is found",
  (source) => expect(oddPythonTextsIn("a.py", source)).toHaveLength(1),
);

function oddTitlesIn(file: string, source: string): string[] {
  const titles = Array.from(source.matchAll(TITLE), ([, , title = ""]) => title);
  return titles.filter((title) => TITLE_OPENER.test(title) || WORDS.test(title)).map((title) => `${file}: ${title}`);
}

test("names of tests have no riddle openers and no odd words", () => {
  const files = globSync("{agent,packages/*,scripts}/test/**/*.test.ts", { cwd: ROOT, exclude: [SELF] });
  expect(files.length).toBeGreaterThan(400);
  expect(files.flatMap((file) => oddTitlesIn(file, readFileSync(join(ROOT, file), "utf8")))).toEqual([]);
});

test.each([
  'test("what is damaged is named", async () => {});',
  'describe("a sandbox", () => { it.each([1, 2])("who has %i", (n) => {}); });',
  "it.runIf(isHere())(`a process goes on`, () => {});",
])("%s is found", (source) => expect(oddTitlesIn("a.test.ts", source)).toHaveLength(1));

test.each([
  ['fail("Who has no key is refused.");', "a sentence that begins with a riddle"],
  ['fail("Saved. What is damaged is named.");', "a later sentence that does"],
  ["fail(`The process of ${id} goes on.`);", "an odd word in a template"],
])("%s is found: %s", (source) => {
  expect(oddTextsIn("a.ts", source)).toHaveLength(1);
});

test.each(['fail("The server keeps running.");', "// Who reads this is a programmer.\nrun();", 'emit("what");'])(
  "%s is fine",
  (source) => expect(oddTextsIn("a.ts", source)).toEqual([]),
);

test("text between tags is found", () => {
  expect(oddTextsIn("a.tsx", "export const note = <p>\n  It is gone for\n  good.</p>;")).toEqual([
    "a.tsx:1: It is gone for good.",
  ]);
});
