import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import { startConsole } from "./support/start-console.ts";
import { meanwhile } from "../../../test/kit/meanwhile.ts";

/** A browser has so many connections to one server, for all of its tabs. */
const CONNECTIONS = 6;

test("more tabs than a browser has connections: those that are not seen hold none", async () => {
  const { context, client, url, page, open } = await startConsole({ path: false });
  await Sandbox.create({ client, name: "seen-in-every-tab" });
  for (let count = 0; count <= CONNECTIONS; count += 1) {
    const tab = await context.newPage();
    await tab.goto(url);
    await tab.getByText("seen-in-every-tab").first().waitFor();
    await tab.getByText("live", { exact: true }).waitFor();
    await tab.evaluate(() => {
      Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
  }
  await open("/");
  await page.getByText("seen-in-every-tab").first().waitFor();
  // One that is looked at again hears what happened meanwhile.
  await Sandbox.create({ client, name: "made-meanwhile" });
  const [, first] = context.pages();
  await first?.evaluate(() => {
    Object.defineProperty(document, "visibilityState", { value: "visible", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await first?.getByText("made-meanwhile").first().waitFor();
});

test("a server that takes longer for an answer than the page waits until it asks again is heard", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client, name: "slow" });
  await page.route(/\/v1\/(instances|sandboxes\/[^/]+\/usage)$/, async (route) => {
    await meanwhile(3_500);
    await route.continue().catch(() => {});
  });
  await open(`/sandboxes/${sandbox.id}/metrics`);
  await page.getByRole("heading", { name: "Memory" }).waitFor();
  await open("/instances");
  await page.getByText("this server", { exact: true }).waitFor();
});

test("a page says that it is not live for as long as it is not", async () => {
  const { page, guard, server } = await startConsole();
  await page.getByText("live", { exact: true }).waitFor();
  guard.expectProblem(/^failed: GET/);
  await page.evaluate(() => {
    const told = (window.told = new Set<string>());
    const place = document.querySelector(".live");
    const look = (): unknown => told.add(place?.textContent ?? "");
    if (place !== null)
      new MutationObserver(look).observe(place, { childList: true, subtree: true, characterData: true });
  });
  await page.context().setOffline(true);
  for (const socket of server.parts?.sockets ?? []) socket.destroy();
  await page.getByText("reconnecting …").waitFor();
  await page.evaluate(() => window.told?.clear());
  // As often as it is tried again.
  let tried = 0;
  page.on("requestfailed", (request) => (tried += Number(request.url().includes("/v1/events"))));
  await expect.poll(() => tried).toBeGreaterThan(6);
  expect(await page.evaluate(() => [...(window.told ?? [])])).toEqual([]);
  await page.context().setOffline(false);
  await page.getByText("live", { exact: true }).waitFor();
});

test("a user who returns to a long list finds the same place; another page begins at its top", async () => {
  const { page, client, open } = await startConsole({
    path: false,
    browser: { viewport: { width: 400, height: 500 } },
  });
  await Promise.all(Array.from({ length: 40 }, (_, number) => Sandbox.create({ client, name: `of-many-${number}` })));
  await open("/");
  await page.getByRole("status").getByText("40", { exact: true }).waitFor();
  await page.evaluate(() => scrollTo(0, 2_500));
  await page
    .getByRole("link", { name: /^of-many/ })
    .nth(5)
    .dispatchEvent("click");
  await page.getByRole("heading", { name: /^of-many/ }).waitFor();
  expect(await page.evaluate(() => scrollY)).toBe(0);
  await page.goBack();
  await expect.poll(() => page.evaluate(() => scrollY)).toBe(2_500);
});

test("a restarted server is known by what it reports now", async () => {
  const { page, client, server, guard, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client, name: "there-before" });
  await open(`/sandboxes/${sandbox.id}/facts`);
  await page.getByText("live", { exact: true }).waitFor();
  guard.expectProblem(/^failed: GET .*ERR_(INCOMPLETE_CHUNKED_ENCODING|CONNECTION|EMPTY)/);
  await page.route("**/v1/server", async (route) => {
    const response = await route.fetch();
    const answer = (await response.json()) as object;
    await route.fulfill({ response, json: { ...answer, instance_id: "another0-started-anew" } });
  });
  for (const socket of server.parts?.sockets ?? []) socket.destroy();
  await page.getByText("another0", { exact: true }).waitFor();
  expect(await page.title()).toBe("there-before · sandboxer");
});
