import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import type { Page } from "playwright-core";
import { startConsole } from "./support/start-console.ts";

async function typeKey(page: Page, key: string): Promise<void> {
  await page.getByLabel("Key of this server").fill(key);
  await page.getByRole("button", { name: "Log in" }).click();
}

const sections = (page: Page) => page.getByRole("navigation", { name: "Sections" });

test("a wrong key shows the next step, and the right one logs in; a reload stays logged in", async () => {
  const { page, keys, guard, screenshot } = await startConsole({ keys: "logged out" });
  guard.expectAnswer(401, /^\/v1\/login$/);
  await page.getByLabel("Key of this server").waitFor();
  await screenshot("login");
  await typeKey(page, "sbx_wrong");
  const alert = page.getByRole("alert");
  await alert.getByText("unauthorized").waitFor();
  await alert.getByText("sandboxer keys create").waitFor();
  expect(await page.getByLabel("Key of this server").inputValue()).toBe("");
  await typeKey(page, keys?.texts.use ?? "");
  await sections(page).waitFor();
  await page.reload();
  await sections(page).waitFor();
});

test("the browser stores no key, only a cookie that scripts cannot read", async () => {
  const { page, context, keys } = await startConsole({ keys: "logged out" });
  const key = keys?.texts.admin ?? "";
  await typeKey(page, key);
  await sections(page).waitFor();
  const [cookie, ...others] = await context.cookies();
  expect(cookie).toMatchObject({ name: "sandboxer_session", httpOnly: true, sameSite: "Strict" });
  expect(others).toEqual([]);
  expect(cookie?.value).not.toContain(key);
  const seen = await page.evaluate(() =>
    JSON.stringify({
      cookie: document.cookie,
      local: Object.entries(localStorage),
      session: Object.entries(sessionStorage),
      history: history.state as unknown,
      page: document.documentElement.outerHTML,
      fields: [...document.querySelectorAll("input")].map((input) => input.value),
    }),
  );
  for (const secret of [key, key.slice(-20), cookie?.value ?? "no cookie"]) {
    expect(seen).not.toContain(secret);
    expect(page.url()).not.toContain(secret);
  }
});

test("logging out ends the session at the server too", async () => {
  const { page, context, url, guard } = await startConsole({ keys: "use" });
  const before = await context.cookies();
  // Requests of the page at the same moment come too late.
  guard.expectAnswer(401, /^\/v1\//);
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Key of this server").waitFor();
  // The answer to one of those requests may show the login form before the answer to the logout removes the cookie.
  await expect.poll(() => context.cookies()).toEqual([]);
  // A copy of the cookie is invalid as well.
  await context.addCookies(before);
  expect((await context.request.get(`${url}/v1/server`)).status()).toBe(401);
});

test("a revoked key ends the sessions that were opened with it, even in an open page", async () => {
  const { page, keys, guard } = await startConsole({ keys: "use" });
  await sections(page).waitFor();
  guard.expectAnswer(401, /^\/v1\//);
  // The server cuts the open stream.
  guard.expectProblem(/v1\/events.*ERR_INCOMPLETE_CHUNKED_ENCODING/);
  const record = keys?.file.list().find(({ scope }) => scope === "use");
  await keys?.file.revoke(record?.id ?? "");
  await page.getByLabel("Key of this server").waitFor();
});

test("a session that ends behind a dialog shows only the login, which returns to the same page", async () => {
  const { page, client, keys, guard, open } = await startConsole({ keys: "use", path: false });
  const sandbox = await Sandbox.create({ client, name: "still-here" });
  await open(`/sandboxes/${sandbox.id}/facts`);
  await page.getByRole("button", { name: "Fork …" }).click();
  await page.getByRole("dialog", { name: "Fork still-here" }).waitFor();
  guard.expectAnswer(401, /^\/v1\//);
  guard.expectProblem(/v1\/events.*ERR_INCOMPLETE_CHUNKED_ENCODING/);
  const record = keys?.file.list().find(({ scope }) => scope === "use");
  await keys?.file.revoke(record?.id ?? "");
  await page.getByText("The session has expired.").waitFor();
  expect(await page.locator("dialog[open]").count()).toBe(0);
  await typeKey(page, keys?.texts.read ?? "");
  await page.getByRole("heading", { name: "Identity", exact: true }).waitFor();
  // This key has the scope read.
  expect(await page.getByRole("button", { name: "Fork …" }).count()).toBe(0);
});

test("a log-out that fails is reported", async () => {
  const { page, guard } = await startConsole({ keys: "use" });
  guard.expectProblem(/^failed: POST .*logout/);
  await page.route("**/v1/logout", (route) => route.abort("connectionrefused"));
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByText("You are still logged in").waitFor();
});

test("a server without keys has no login", async () => {
  const { page } = await startConsole();
  await sections(page).waitFor();
  expect(await page.getByLabel("Key of this server").count()).toBe(0);
});
