import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import { hasOpenssl, makeCertificate } from "../../../test/kit/certificates.ts";
import { startConsole } from "./support/start-console.ts";
import { meanwhile } from "../../../test/kit/meanwhile.ts";

/** A browser has this many connections to one server, for all of its tabs. */
const CONNECTIONS = 6;

test("hidden tabs hold no connection, so that more tabs than connections work", async () => {
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
  // A tab that is visible again receives the missed events.
  await Sandbox.create({ client, name: "made-meanwhile" });
  const [, first] = context.pages();
  await first?.evaluate(() => {
    Object.defineProperty(document, "visibilityState", { value: "visible", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await first?.getByText("made-meanwhile").first().waitFor();
});

test.skipIf(!hasOpenssl())("over HTTPS more tabs than that are live at once, on one connection", async () => {
  const tls = { credentials: await makeCertificate(), onRenewed: () => {} };
  const browser = { ignoreHTTPSErrors: true };
  const { context, url, server } = await startConsole({ path: false, tls, browser });
  for (let count = 0; count <= CONNECTIONS; count += 1) {
    const tab = await context.newPage();
    await tab.goto(url);
    await tab.getByText("live", { exact: true }).waitFor();
  }
  expect(server.parts?.sockets.size).toBeLessThan(CONNECTIONS);
});

test("a slow server whose answers take longer than the polling interval is still heard", async () => {
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

test("a page shows that it is not live as long as it is not", async () => {
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
  // How often it was tried again.
  let tried = 0;
  page.on("requestfailed", (request) => (tried += Number(request.url().includes("/v1/events"))));
  await expect.poll(() => tried).toBeGreaterThan(6);
  expect(await page.evaluate(() => [...(window.told ?? [])])).toEqual([]);
  await page.context().setOffline(false);
  await page.getByText("live", { exact: true }).waitFor();
});

test("a user who returns to a long list finds the same position; another page begins at its top", async () => {
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

test("a restarted server is shown with its current facts", async () => {
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

test("a newer engine is offered when it is ready", async () => {
  const { page, open } = await startConsole({ path: false });
  const message = "New sandboxes use it after the next restart of the server; until then, runsc 20240729.0.";
  const others = { platform: null, source: "cache" };
  const engines = [
    { ...others, version: "20240729.0", state: "default", message: null },
    { ...others, version: "20260622.0", state: "ready", message },
  ];
  await page.route("**/v1/server", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...((await response.json()) as object), engines } });
  });
  await open("/instances");
  await page.getByText(`gVisor 20260622.0 is ready. ${message}`).waitFor();
  expect(await page.getByText("20240729.0 (default), 20260622.0 (ready)").count()).toBe(1);
});
