import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { AxeResults, RunOptions } from "axe-core";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { everyPage, isTooWide, visit } from "./support/every-page.ts";
import { furnish } from "./support/furnished.ts";
import { takeScreenshot } from "./support/screenshots.ts";
import { startConsole } from "./support/start-console.ts";
import { testImages } from "./support/test-images.ts";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

declare global {
  interface Window {
    axe: { run(options?: RunOptions): Promise<AxeResults> };
  }
}

/** The findings of axe, one line for each element. Evaluated by the debugger: the page's policy stays unchanged. */
async function axeFindings(page: Page, options: RunOptions): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const { violations } = await page.evaluate((chosen) => window.axe.run(chosen), options);
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.length} of ${nodes[0]?.html.slice(0, 160)}`);
}

const NARROW = { width: 360, height: 740 };
const WIDE = { width: 1280, height: 800 };

test("axe finds nothing on any page, light and dark, and nothing scrolls sideways at 360 px", async () => {
  const { library, names } = await testImages();
  const { page, client, open } = await startConsole({ path: false, images: library });
  for (const name of names) await client.images.pull(name);
  const { sandbox, stored } = await furnish(client);
  const pages = [...everyPage(sandbox.id), { name: "sandbox-asleep", path: `/sandboxes/${stored.id}` }];
  const findings: string[] = [];
  const look = async (what: string, rules: RunOptions = {}): Promise<void> => {
    for (const finding of await axeFindings(page, rules)) findings.push(`${what}: ${finding}`);
    if (await isTooWide(page)) findings.push(`${what}: wider than the window`);
  };
  await open("/");
  for (const { name, path } of pages) {
    await page.emulateMedia({ colorScheme: "light" });
    await visit(page, path);
    await look(`${name}, light`);
    await takeScreenshot(page, `${name}-light`);
    await page.emulateMedia({ colorScheme: "dark" });
    await look(`${name}, dark`, { runOnly: ["color-contrast"] });
    await takeScreenshot(page, `${name}-dark`);
    await page.setViewportSize(NARROW);
    await look(`${name}, 360 px`);
    await takeScreenshot(page, `${name}-360`);
    await page.setViewportSize(WIDE);
  }
  expect(findings).toEqual([]);
});

/** Everything that can be pressed or filled in, and how it looks when it has the focus. */
async function walkByKeyboard(page: Page): Promise<{ reached: Set<string>; invisible: string[] }> {
  const reached = new Set<string>();
  const invisible: string[] = [];
  await page.evaluate(() => {
    let next = 0;
    for (const element of document.querySelectorAll<HTMLElement>("a[href], button, input, select, textarea")) {
      element.dataset["walk"] = String((next += 1));
    }
  });
  await page.locator("[data-walk='1']").focus();
  reached.add("1");
  let inEditor = false;
  for (let presses = 0; presses < 200; presses += 1) {
    // An editor uses Tab itself, until Escape.
    if (inEditor) await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const element = document.activeElement;
      const focusable = element instanceof HTMLElement || element instanceof SVGElement;
      if (!focusable || element === document.body) return undefined;
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
      const ring = (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none";
      return { walk: element.dataset["walk"] ?? "", ring, tag: element.tagName, html: element.outerHTML.slice(0, 120) };
    });
    if (at === undefined) break;
    inEditor = at.tag === "TEXTAREA";
    if (at.walk !== "" && reached.has(at.walk)) break;
    reached.add(at.walk);
    if (!at.ring && at.walk !== "") invisible.push(at.html);
  }
  return { reached, invisible };
}

test("the keyboard reaches every link, button and field of every page, and the focus is visible", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const { sandbox } = await furnish(client);
  await open("/");
  // A terminal passes the Tab key to its program: its page has a test of its own.
  for (const { name, path } of everyPage(sandbox.id).filter((each) => each.name !== "sandbox-terminal")) {
    await visit(page, path);
    const { reached, invisible } = await walkByKeyboard(page);
    expect(invisible, `${name}: focus without a ring`).toEqual([]);
    const missed = await page.evaluate(
      (walked) =>
        [...document.querySelectorAll<HTMLElement>("[data-walk]")]
          .filter(
            (element) =>
              element.checkVisibility({ checkVisibilityCSS: true }) && !element.matches(":disabled, [tabindex='-1']"),
          )
          .filter((element) => !walked.includes(element.dataset["walk"] ?? ""))
          .map((element) => element.outerHTML.slice(0, 120)),
      [...reached],
    );
    expect(missed, `${name}: not reached`).toEqual([]);
  }
});
