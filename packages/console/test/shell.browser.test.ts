import { Sandbox } from "@sandboxer/client";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { everyPage, untilShown } from "./support/every-page.ts";
import { furnish } from "./support/furnished.ts";
import { startConsole } from "./support/start-console.ts";

test("every page has an address: opened directly and reloaded, it shows the same", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const { sandbox } = await furnish(client);
  const headings = new Set<string>();
  for (const { path, name } of everyPage(sandbox.id)) {
    await open(path);
    await untilShown(page);
    const heading = await page.locator("main h1").first().textContent();
    const title = await page.title();
    const tab = await page
      .locator("main [aria-current=page], main [aria-selected=true]")
      .first()
      .textContent({ timeout: 100 })
      .catch(() => "");
    headings.add(`${heading} ${tab}`);
    await page.reload();
    await untilShown(page);
    expect(await page.locator("main h1").first().textContent(), `${name} after a reload`).toBe(heading);
    expect(await page.title(), `${name} after a reload`).toBe(title);
    expect(new URL(page.url()).pathname).toBe(path);
  }
  // Each shows something of its own.
  expect(headings.size).toBe(everyPage(sandbox.id).length);
});

test("back and forward lead through what was looked at", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client, name: "looked-at" });
  await open("/");
  await page.getByRole("link", { name: "looked-at" }).click();
  await page.getByRole("heading", { name: "looked-at" }).waitFor();
  await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: "Instances" }).click();
  await page.getByRole("heading", { name: "Instances" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "looked-at" }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/sandboxes/${sandbox.id}`);
  await page.goForward();
  await page.getByRole("heading", { name: "Instances" }).waitFor();
});

test("a page whose connections break goes on by itself, with nothing missed", async () => {
  const { page, client, server, guard } = await startConsole();
  await page.getByText("live", { exact: true }).waitFor();
  guard.expectProblem(/^failed: GET .*ERR_(INCOMPLETE_CHUNKED_ENCODING|CONNECTION|EMPTY)/);
  for (const socket of server.parts?.sockets ?? []) socket.destroy();
  await Sandbox.create({ client, name: "made-meanwhile" });
  await page.getByText("made-meanwhile").first().waitFor();
});

/** What of a dialog or a menu would do something. */
async function offers(page: Page): Promise<string[]> {
  const inDialogs = page.getByRole("dialog").locator(".button-primary, .button-danger, [type=submit]");
  const inMenus = page.getByRole("menuitem").filter({ hasNotText: /copy|open|show/i });
  return [...(await inDialogs.allInnerTexts()), ...(await inMenus.allInnerTexts())];
}

/** Presses every button of the content, one after the other, and gives what could be done then. */
async function pressEverything(page: Page, openPage: () => Promise<void>): Promise<string[]> {
  const offered: string[] = [];
  const buttons = page.locator("main").getByRole("button");
  const count = await buttons.count();
  const { pathname } = new URL(page.url());
  for (let at = 0; at < count; at += 1) {
    const button = buttons.nth(at);
    if (!(await button.isVisible()) || (await button.isDisabled())) continue;
    await button.click();
    offered.push(...(await offers(page)));
    await page.keyboard.press("Escape");
    if (new URL(page.url()).pathname !== pathname) await openPage();
  }
  return offered;
}

test("a key that may only read sees no button that it may not press: pressing all of them changes nothing", async () => {
  const { page, client, open } = await startConsole({ path: false, keys: "read" });
  const { sandbox, stored } = await furnish(client);
  const changing: string[] = [];
  page.on("request", (request) => {
    if (request.method() !== "GET") changing.push(`${request.method()} ${request.url()}`);
  });
  const pages = [...everyPage(sandbox.id), { name: "asleep", path: `/sandboxes/${stored.id}` }];
  const offered: string[] = [];
  for (const { name, path } of pages) {
    const openPage = async (): Promise<void> => {
      await open(path);
      await untilShown(page);
    };
    await openPage();
    for (const offer of await pressEverything(page, openPage)) offered.push(`${name}: ${offer}`);
  }
  expect(changing).toEqual([]);
  expect(offered).toEqual([]);
});
