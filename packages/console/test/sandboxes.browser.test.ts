import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import { isTooWide } from "./support/every-page.ts";
import { startConsole } from "./support/start-console.ts";

test("an empty list shows the first command; a new sandbox opens on its page", async () => {
  const { page, client, url } = await startConsole();
  await page.getByRole("heading", { name: "No sandboxes yet" }).waitFor();
  await page.getByRole("button", { name: /^Copy: .*sandboxer run -- echo hello/ }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    `SANDBOXER_URL=${url} sandboxer run -- echo hello`,
  );
  await page.getByRole("button", { name: "New sandbox" }).first().click();
  const form = page.getByRole("dialog", { name: "New sandbox" });
  await form.getByLabel("Name").fill("built-here");
  await form.getByText("Key, limits, time, labels").click();
  await form.getByLabel("Lifetime").fill("2h");
  await form.getByRole("button", { name: "Add a label" }).click();
  await form.getByLabel("Key of label 1").fill("team");
  await form.getByLabel("Value of label 1").fill("it's ours");
  await form.getByText("Copy as command, program or curl").click();
  await expect
    .poll(() => form.locator("pre").first().textContent())
    .toBe(String.raw`SANDBOXER_URL=${url} sandboxer create --name built-here --ttl 2h --label 'team=it'\''s ours'`);
  await form.getByRole("button", { name: "Create", exact: true }).click();
  await page.waitForURL(/\/sandboxes\/[^/]+$/);
  const [made] = await Array.fromAsync(Sandbox.list({ name: "built-here" }, { client }));
  expect(made?.record.labels).toEqual({ team: "it's ours" });
  expect(made?.record.expiresAt).not.toBeNull();
});

test("changes of sandboxes are shown live; search, filters and order are in the URL", async () => {
  const { page, client, screenshot } = await startConsole();
  const web = await Sandbox.create({ client, name: "web", labels: { team: "ml" } });
  await Sandbox.create({ client, name: "batch", labels: { team: "web" } });
  const row = (name: string) => page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
  await row("web").getByText("running").waitFor();
  await row("batch").getByText("running").waitFor();
  await web.checkpoint();
  await row("web").getByText("paused").waitFor();
  await screenshot("sandboxes");

  await page.getByLabel("Filter by label").selectOption("team=ml");
  await expect.poll(() => page.getByRole("row").count()).toBe(2);
  expect(new URL(page.url()).searchParams.get("label")).toBe("team=ml");
  await page.getByRole("searchbox").fill("nothing has this");
  await page.getByText("No sandbox matches.").waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await expect.poll(() => page.getByRole("row").count()).toBe(3);

  await page.getByRole("button", { name: "Name", exact: true }).click();
  const names = (): Promise<string[]> => page.locator(".sandbox-name").allTextContents();
  await expect.poll(names).toEqual(["batch", "web"]);
  await page.reload();
  await expect.poll(names).toEqual(["batch", "web"]);
  await page.getByRole("button", { name: "Name", exact: true }).click();
  await expect.poll(names).toEqual(["web", "batch"]);
});

test("a sandbox whose stored record is damaged is named above the list, with its file", async () => {
  const { page, client, server } = await startConsole();
  const web = await Sandbox.create({ client, name: "web" });
  await Sandbox.create({ client, name: "batch" });
  await web.checkpoint();
  const versions = join(server.parts?.storeFolder ?? "", web.id, ".head");
  const file = join(versions, readdirSync(versions).toSorted().at(-1) ?? "");
  writeFileSync(file, "");
  await page.reload();
  await page.getByText("The stored record of one sandbox is damaged.").waitFor();
  await page.getByText(`The stored record ${file} is damaged`).waitFor();
  await page.getByRole("link", { name: "batch", exact: true }).waitFor();
  expect(await isTooWide(page)).toBe(false);
});

test("selected sandboxes are paused, resumed and deleted together, and failures name their sandbox", async () => {
  const { page, client, guard } = await startConsole();
  for (const name of ["one", "two", "three"]) await Sandbox.create({ client, name });
  await Sandbox.create({ client, name: "fleeting", enableCheckpoint: false });
  // A sandbox that is being created cannot be paused, and would be skipped too.
  await expect.poll(() => page.getByRole("row").filter({ hasText: "running" }).count()).toBe(4);
  await page.getByLabel("Select fleeting").check();
  await page.getByLabel("Select one", { exact: true }).click({ modifiers: ["Shift"] });
  await page.getByText("4 selected").waitFor();
  await page.getByRole("toolbar").getByRole("button", { name: "Pause", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("1 of the selected are skipped").waitFor();
  await dialog.getByRole("button", { name: "Pause 3" }).click();
  await dialog.getByText("3 of 3 done").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await expect.poll(() => page.getByText("paused", { exact: true }).count()).toBeGreaterThanOrEqual(3);

  await page.getByLabel("Select all 4 listed").check();
  await page.getByRole("toolbar").getByRole("button", { name: "Delete", exact: true }).click();
  // One of them is deleted before its turn. A deleted one may be requested once more.
  const [two] = await Array.fromAsync(Sandbox.list({ name: "two" }, { client }));
  for (const status of [404, 410]) guard.expectAnswer(status, /^\/v1\/sandboxes\/[^/]+$/);
  await two?.destroy();
  await dialog.getByRole("button", { name: "Delete 4" }).click();
  await dialog.getByText("4 of 4 done, 1 failed").waitFor();
  await dialog.getByRole("alert").getByText("two").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByRole("heading", { name: "No sandboxes yet" }).waitFor();
});

test("the palette finds sandboxes and offers their actions; shortcuts do not disturb typing", async () => {
  const { page, client, guard } = await startConsole();
  // The terminals of a sandbox that is just being paused are requested in vain.
  guard.expectAnswer(409, /\/(processes|exec)/);
  const target = await Sandbox.create({ client, name: "target-of-search" });
  await page.getByRole("link", { name: "target-of-search" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search pages and actions" }).fill("tgtsearch");
  await page.getByRole("option", { name: /target-of-search/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/sandboxes/${target.id}`);
  await page.getByRole("heading", { name: "target-of-search" }).waitFor();
  await page.getByRole("button", { name: /Command palette/ }).click();
  await page.getByRole("combobox", { name: "Search pages and actions" }).fill("pause");
  await page.getByRole("option", { name: "Pause target-of-search", selected: true }).waitFor();
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await target.refresh()).state).toBe("stored");

  // The terminal has the focus, so it gets the keys.
  await page.getByRole("heading", { name: "target-of-search" }).click();
  await page.keyboard.press("g");
  await page.keyboard.press("i");
  await page.waitForURL("**/instances");
  await page.keyboard.press("/");
  await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("search");
  await page.keyboard.type("n?");
  expect(await page.getByRole("dialog").count()).toBe(0);
  await page.getByRole("heading", { name: "Sandboxes" }).click();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
});

test("a dialog that is opened while another closes stays open", async () => {
  const { page } = await startConsole();
  await page.getByRole("button", { name: /Command palette/ }).click();
  await page.getByRole("combobox", { name: "Search pages and actions" }).fill("theme");
  const opened = await page.evaluate(async () => {
    const field = document.querySelector<HTMLElement>("[role=combobox]");
    field?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
    // The page has removed it; the browser has not reported its end yet.
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    const isGone = document.querySelector("[role=combobox]") === null;
    document.querySelector<HTMLElement>("button[aria-label^='Command palette']")?.click();
    await new Promise((resolve) => setTimeout(resolve, 500));
    return { isGone, open: document.querySelectorAll("dialog[open]").length };
  });
  expect(opened).toEqual({ isGone: true, open: 1 });
});

test("thousands of sandboxes render only the visible rows", async () => {
  const { page, server } = await startConsole({ path: false });
  const records = Array.from({ length: 5000 }, (_, index) => pretend(index));
  // The store would need a minute for so many; the page handles them the same way.
  await page.route("**/v1/sandboxes?*", async (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get("cursor") ?? 0);
    const next = from + 1000 < records.length ? String(from + 1000) : null;
    await route.fulfill({ json: { items: records.slice(from, from + 1000), next_cursor: next } });
  });
  await page.goto(server.url);
  await page.getByRole("status").getByText("5000", { exact: true }).waitFor();
  expect(await page.getByRole("row").count()).toBeLessThan(80);
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await page.getByRole("link", { name: "pretended-4999" }).waitFor();
  expect(await page.getByRole("row").count()).toBeLessThan(80);
  await page.getByRole("searchbox").fill("pretended-321");
  await expect.poll(() => page.locator(".sandbox-name").first().textContent()).toBe("pretended-321");
  await page.getByRole("status").getByText("11 of 5000").waitFor();
});

function pretend(index: number): object {
  return {
    id: `sb${String(index).padStart(6, "0")}`,
    name: `pretended-${index}`,
    state: "stored",
    frozen: false,
    backend: "fake",
    profile: null,
    image: null,
    labels: { number: String(index % 7) },
    key: null,
    spec_hash: null,
    network: "none",
    resources: {},
    flags: {
      enable_checkpoint: true,
      enable_idle_timeout_auto_checkpoint: false,
      enable_sandbox_handoff: true,
      on_disconnect: "keep",
    },
    owner: null,
    epoch: 1,
    created_at: new Date(Date.UTC(2026, 0, 1) - index * 1000).toISOString(),
    expires_at: null,
    idle_timeout: 0,
    idle_seconds: null,
    executing: false,
    clients: 0,
    checkpoint: null,
    durability: { max_loss: null, last_saved_at: null, at_risk: null },
    retention: null,
    encryption: null,
    origin: { sandbox_id: null, snapshot_id: null },
    placement: null,
    details: {},
  };
}

test("a bulk action continues when its dialog is closed, and a note reports its result", async () => {
  const { page, client } = await startConsole({ path: false });
  for (const name of ["first", "second"]) await Sandbox.create({ client, name });
  let goOn = (): void => {};
  const asked = new Promise<void>((resolve) => (goOn = resolve));
  await page.route("**/checkpoint*", async (route) => {
    await asked;
    await route.continue();
  });
  await page.goto(client.transport.url);
  await page.getByRole("checkbox", { name: "Select all 2 listed" }).click();
  const bar = page.getByRole("toolbar", { name: "Actions for selected sandboxes" });
  await bar.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Pause 2" }).click();
  await page.getByText("0 of 2 done").waitFor();
  await page.keyboard.press("Escape");
  await bar.waitFor({ state: "detached" });
  goOn();
  await page.getByText("Pause: 2 of 2 done").waitFor();
});

test("the list shows everything at any window width", async () => {
  const { page, client } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({
    client,
    name: "of-some-length-as-names-are",
    labels: { team: "machine-learning" },
  });
  await sandbox.checkpoint();
  await page.goto(client.transport.url);
  const menu = page.getByRole("button", { name: "Actions for of-some-length-as-names-are" });
  for (const width of [360, 600, 768, 899, 905, 1_000, 1_055, 1_065, 1_280]) {
    await page.setViewportSize({ width, height: 700 });
    await menu.waitFor();
    expect(await isTooWide(page), `${width} px`).toBe(false);
    const box = await menu.boundingBox();
    expect((box?.x ?? width) + (box?.width ?? 0), `${width} px`).toBeLessThanOrEqual(width);
  }
});

test("the dialog for a new sandbox is complete with the bundled profiles, and offers image and network", async () => {
  const { page, screenshot } = await startConsole();
  await page.getByRole("button", { name: "New sandbox" }).first().click();
  const dialog = page.getByRole("dialog", { name: "New sandbox" });
  await dialog.getByRole("option", { name: /^profile.gvisor-default/ }).waitFor({ state: "attached" });
  for (const label of ["Image", "Network"]) expect(await dialog.getByLabel(label).isVisible()).toBe(true);
  await dialog.getByText("Key, limits, time, labels").click();
  for (const width of [1_280, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await screenshot(`new-sandbox-${width}`);
    const cut = await dialog.evaluate((element) => {
      const edge = element.getBoundingClientRect().right;
      const fields = [...element.querySelectorAll("input, select, textarea, button")];
      return fields.filter((field) => field.getBoundingClientRect().right > edge).map((field) => field.outerHTML);
    });
    expect(cut, `${width} px`).toEqual([]);
  }
});

test("a sandbox at a server without a store is not shown as having no server", async () => {
  const { page, client, open } = await startConsole({ path: false, store: false });
  const sandbox = await Sandbox.create({ client, name: "storeless" });
  await open(`/sandboxes/${sandbox.id}/facts`);
  await page.getByText(/^runs on this server, /).waitFor();
  await page.getByText("this server", { exact: true }).waitFor();
});
