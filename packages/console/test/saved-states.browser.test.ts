import { randomBytes } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox, Sandboxer, SandboxerError } from "@sandboxer/client";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { isTooWide, visit } from "./support/every-page.ts";
import type { ConsoleServer } from "./support/console-servers.ts";
import { startConsole } from "./support/start-console.ts";

const panelOf = (page: Page) => page.getByRole("complementary");

/** Flips a bit in every pack of blocks that is not in `before`; returns the original contents, by path. */
async function damage(server: ConsoleServer, before: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
  const folder = join(server.parts?.storeFolder ?? "", "packs");
  const whole = new Map<string, Buffer>();
  for (const name of await packsOf(server)) {
    if (before.includes(name)) continue;
    const bytes = await readFile(join(folder, name));
    whole.set(join(folder, name), bytes);
    const hurt = Buffer.from(bytes);
    hurt[Math.floor(hurt.length / 2)] = (hurt[Math.floor(hurt.length / 2)] ?? 0) ^ 1;
    await writeFile(join(folder, name), hurt);
  }
  return whole;
}

async function packsOf({ parts }: ConsoleServer): Promise<string[]> {
  const names = await readdir(join(parts?.storeFolder ?? "", "packs"), { recursive: true }).catch(() => []);
  return names.filter((name) => name.endsWith(".pack"));
}

test("a sandbox at risk is shown above the list, in its row, and on its page, until it is saved", async () => {
  const { page, client, server, open, screenshot } = await startConsole({ path: false });
  const sealed = new Sandboxer({ url: server.url, encryptionKey: randomBytes(32).toString("base64") });
  await Sandbox.create({ client: sealed, name: "secret" });
  await Sandbox.create({ client, name: "calm", labels: { team: "ml" } });
  server.parts?.backend.faults.set("snapshot", { error: new SandboxerError("no_space", "The store's disk is full.") });
  const promised = await Sandbox.create({ client, name: "promised", maxLoss: "1s", labels: { team: "ml" } });
  await promised.exec("echo something to lose");

  await open("/");
  const row = (name: string) => page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
  await row("promised").getByText("at risk", { exact: true }).waitFor();
  await row("secret").getByText("encrypted", { exact: true }).waitFor();
  expect(await row("calm").locator(".badge").count()).toBe(0);
  await screenshot("saved-states-list");
  await page.getByText("One sandbox is at risk").waitFor();
  await page.getByRole("button", { name: "Show it" }).click();
  await page.getByText("1 of 3", { exact: true }).waitFor();
  expect(new URL(page.url()).search).toBe("?badge=at+risk");

  await page.getByRole("link", { name: "promised", exact: true }).click();
  await page.getByText("more than the last 1s is lost").waitFor();
  await page.getByText("The store's disk is full").first().waitFor();
  await page.getByRole("link", { name: "Facts" }).click();
  const saved = page.getByRole("region", { name: "Saved states" });
  await saved.getByText("the last 1s", { exact: true }).waitFor();
  await screenshot("saved-states-facts");
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await isTooWide(page)).toBe(false);
  await page.setViewportSize({ width: 1280, height: 800 });

  // Automatic checkpoints are held until the button was pressed.
  const held = Promise.withResolvers<void>();
  server.parts?.backend.faults.set("snapshot", { until: held.promise });
  await promised.update({ maxLoss: "1h" });
  await page.getByRole("button", { name: "Save now" }).click();
  held.resolve();
  await page.getByText("if its server fails now").waitFor({ state: "detached" });
});

test("the retention of a sandbox previews removals and their bytes before it is saved", async () => {
  const { page, client, server, open, screenshot } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client, name: "archive" });
  for (const text of ["one", "two", "three"]) {
    await sandbox.files.write("/workspace/changing", text);
    await sandbox.checkpoint({ leaveRunning: true });
    await sandbox.snapshot(text === "one" ? { name: "first" } : {});
  }
  const checkpoints = async () => (await server.parts?.durable?.checkpoints.list(sandbox.id))?.length;
  await open(`/sandboxes/${sandbox.id}/facts`);
  const saved = page.getByRole("region", { name: "Saved states" });
  await expect.poll(() => saved.getByText("server default", { exact: true }).count()).toBe(2);
  await saved.getByRole("button", { name: "Retention …" }).click();
  const dialog = page.getByRole("dialog", { name: "Retention of archive" });
  await dialog.getByText("Nothing would be removed.").waitFor();
  const ofCheckpoints = dialog.getByRole("group", { name: "Checkpoint retention" });
  await ofCheckpoints.getByLabel("Newest").fill("0");
  await dialog.getByText("keep at least one").waitFor();
  expect(await dialog.getByRole("button", { name: "Save", exact: true }).isDisabled()).toBe(true);
  await ofCheckpoints.getByLabel("Newest").fill("1");
  await dialog.getByRole("group", { name: "Snapshot retention" }).getByLabel("Newest").fill("1");
  await dialog.getByText(/^The next save would remove 2 checkpoints and 1 snapshot: \d.+B\.$/).waitFor();
  await dialog.getByText("1 checkpoint and 2 snapshots (1 named) are kept.").waitFor();
  await dialog.getByText("Show list").click();
  expect(await dialog.getByRole("listitem").filter({ hasText: "checkpoint_" }).count()).toBe(2);
  await screenshot("saved-states-retention");
  expect(await checkpoints()).toBe(3);

  await dialog.getByText("Copy as command").click();
  await dialog.getByText(/update \S+ --keep-checkpoints last=1 --keep-snapshots last=1/).waitFor();
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await dialog.getByText("Saved. Older checkpoints").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await expect.poll(() => saved.getByText("the newest", { exact: true }).count()).toBe(2);
  expect(await checkpoints()).toBe(3);
  await sandbox.checkpoint({ leaveRunning: true });
  await expect.poll(checkpoints).toBe(1);
});

test("a snapshot is pinned, proven and verified in the lineage, and damage is marked", async () => {
  const { page, client, server, open, screenshot } = await startConsole({ path: false });
  const web = await Sandbox.create({ client, name: "web" });
  const sound = await web.snapshot({ name: "sound" });
  const before = await packsOf(server);
  await web.files.write("/workspace/large", randomBytes(400_000));
  const hurt = await web.snapshot({});
  await web.checkpoint({ leaveRunning: true });
  await open(`/lineage?focus=${sound.id}`);
  const panel = panelOf(page);
  const badge = (text: string) => panel.locator(".badge").filter({ hasText: text });
  await badge("named").waitFor();
  await panel.getByRole("button", { name: "Pin", exact: true }).click();
  await badge("pinned").waitFor();
  expect((await client.snapshots.get(sound.id)).pinned).toBe(true);
  await panel.getByRole("button", { name: "Delete …" }).click();
  await page.getByRole("dialog").getByText("Unpin it before").waitFor();
  expect(await page.getByRole("button", { name: "Delete", exact: true }).isDisabled()).toBe(true);
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await panel.getByRole("button", { name: "Prove …" }).click();
  await page.getByRole("button", { name: "Test restore", exact: true }).click();
  await page.getByText("The snapshot can be restored").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
  await badge("proven").waitFor();

  const whole = await damage(server, before);
  await page.getByRole("treeitem", { name: /^snapshot [0-9a-f]{8},/ }).click();
  await panel.getByRole("button", { name: "Verify …" }).click();
  await page.getByRole("button", { name: "Verify", exact: true }).click();
  await page.getByRole("dialog").getByText("damaged", { exact: true }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
  await badge("damaged").waitFor();
  await page.getByRole("treeitem", { name: /snapshot sound, .+, pinned, named, proven/ }).waitFor();
  await screenshot("saved-states-lineage");
  await page.getByRole("button", { name: "List", exact: true }).click();
  // Its sandbox has a checkpoint of the same blocks.
  await expect.poll(() => page.locator(".lineage-list .badge").filter({ hasText: "damaged" }).count()).toBe(2);

  await visit(page, `/sandboxes/${web.id}/facts`);
  const saved = page.getByRole("region", { name: "Saved states" });
  await page.getByText("Its saved data is damaged:").waitFor();
  for (const [path, bytes] of whole) await writeFile(path, bytes);
  await saved.getByRole("button", { name: "Verify …" }).click();
  await page.getByRole("button", { name: "Verify", exact: true }).click();
  await page.getByRole("dialog").getByText("intact", { exact: true }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
  await page.getByText("Its saved data is damaged:").waitFor({ state: "detached" });
  expect((await client.snapshots.get(hurt.id)).state).toBe("damaged");
});

test("a key with the scope read sees everything, and no buttons", async () => {
  const { page, client, open } = await startConsole({ path: false, keys: "read" });
  const web = await Sandbox.create({ client, name: "web" });
  const snapshot = await web.snapshot({ name: "kept" });
  await client.snapshots.update(snapshot.id, { pinned: true });
  await open(`/lineage?focus=${snapshot.id}`);
  await panelOf(page).locator(".badge").filter({ hasText: "pinned" }).waitFor();
  expect(
    await panelOf(page)
      .getByRole("button", { name: /pin|Verify|Prove/i })
      .count(),
  ).toBe(0);
  await visit(page, `/sandboxes/${web.id}/facts`);
  await page.getByRole("region", { name: "Saved states" }).getByText("Checkpoint retention").waitFor();
  expect(await page.getByRole("button", { name: /Retention|Verify/ }).count()).toBe(0);
});
