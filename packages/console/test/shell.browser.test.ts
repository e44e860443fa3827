import { Sandbox } from "@sandboxer/client";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { everyPage, untilShown, visit } from "./support/every-page.ts";
import { furnish } from "./support/furnished.ts";
import { startConsole } from "./support/start-console.ts";

test("every page has a URL: opened directly or reloaded, it shows the same", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const { sandbox } = await furnish(client);
  const headings = new Set<string>();
  for (const { path, name } of everyPage(sandbox.id)) {
    await open(path);
    await untilShown(page);
    const heading = await page.locator("main h1").first().textContent();
    const tabs = page.locator("main [aria-current=page], main [aria-selected=true]");
    const tab = path.startsWith("/sandboxes/") ? await tabs.first().textContent() : "";
    headings.add(`${heading} ${tab}`);
    await page.reload();
    await untilShown(page);
    expect(await page.locator("main h1").first().textContent(), `${name} after a reload`).toBe(heading);
    const title = path.startsWith("/sandboxes/") ? /^agent-web · sandboxer$/ : / · sandboxer · [0-9a-f-]+$/;
    await expect.poll(() => page.title(), { message: `${name} after a reload` }).toMatch(title);
    expect(new URL(page.url()).pathname).toBe(path);
  }
  // Each has its own heading.
  expect(headings.size).toBe(everyPage(sandbox.id).length);
});

test("back and forward navigate the visited pages", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client, name: "looked-at" });
  await open("/");
  await page.getByRole("link", { name: "looked-at" }).click();
  await page.getByRole("heading", { name: "looked-at" }).waitFor();
  await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: "Servers" }).click();
  await page.getByRole("heading", { name: "Servers" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "looked-at" }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/sandboxes/${sandbox.id}`);
  await page.goForward();
  await page.getByRole("heading", { name: "Servers" }).waitFor();
});

test("a page whose connections break continues automatically and misses nothing", async () => {
  const { page, client, server, guard } = await startConsole();
  await page.getByText("live", { exact: true }).waitFor();
  guard.expectProblem(/^failed: GET .*ERR_(INCOMPLETE_CHUNKED_ENCODING|CONNECTION|EMPTY)/);
  for (const socket of server.parts?.sockets ?? []) socket.destroy();
  await Sandbox.create({ client, name: "made-meanwhile" });
  await page.getByText("made-meanwhile").first().waitFor();
});

/** Presses every button of the content in turn, and returns the actions that dialogs and menus offer. */
async function pressEverything(page: Page, path: string): Promise<string[]> {
  const offered: string[] = [];
  await visit(page, path);
  const count = await page.locator("main button").count();
  for (let at = 0; at < count; at += 1) {
    const found = await page.evaluate(async (index) => {
      const button = document.querySelectorAll<HTMLButtonElement>("main button")[index];
      if (button === undefined || button.disabled || !button.checkVisibility()) return [];
      button.click();
      for (let frames = 0; frames < 3; frames += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
      const doing = "dialog :is(.button-primary, .button-danger, [type=submit]), [role=menuitem]";
      return [...document.querySelectorAll<HTMLElement>(doing)].map((element) => element.innerText);
    }, at);
    offered.push(...found.filter((text) => !/copy|open|show|close|download/i.test(text)));
    if ((await page.locator("dialog, [role=menu]").count()) > 0) await page.keyboard.press("Escape");
    if (new URL(page.url()).pathname !== path) await visit(page, path);
  }
  return offered;
}

test("a key with the scope read sees no button that it may not press: pressing all of them changes nothing", async () => {
  const { page, client, open } = await startConsole({ path: false, keys: "read" });
  const { sandbox, stored } = await furnish(client);
  const changing: string[] = [];
  page.on("request", (request) => {
    if (request.method() !== "GET") changing.push(`${request.method()} ${request.url()}`);
  });
  const pages = [...everyPage(sandbox.id), { name: "asleep", path: `/sandboxes/${stored.id}` }];
  const offered: string[] = [];
  await open("/");
  for (const { name, path } of pages) {
    for (const offer of await pressEverything(page, path)) offered.push(`${name}: ${offer}`);
  }
  expect(changing).toEqual([]);
  expect(offered).toEqual([]);
});
