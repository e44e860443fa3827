import { expect, test } from "vitest";
import { Sandbox } from "@sandboxer/client";
import { chooseAction } from "./support/more-actions.ts";
import { startConsole } from "./support/start-console.ts";

test("a snapshot is taken, restored with the kept parts shown, and kept while something needs it", async () => {
  const { page, client, open, guard, screenshot } = await startConsole({ path: false });
  const web = await Sandbox.create({ client, name: "web" });
  await open(`/lineage?focus=${web.id}`);
  const panel = page.getByRole("complementary");
  await panel.getByRole("button", { name: "Snapshot …" }).click();
  const taking = page.getByRole("dialog", { name: "Snapshot of web" });
  await taking.getByLabel("Name", { exact: true }).fill("first");
  await taking.getByRole("button", { name: "Add a label" }).click();
  await taking.getByLabel("Key of label 1").fill("it's");
  await taking.getByLabel("Value of label 1").fill("1");
  await taking.getByText("Copy as command").click();
  await taking.getByText(String.raw`sandboxer snapshot ${web.id} --name first --label 'it'\''s=1'`).waitFor();
  await taking.getByRole("button", { name: "Take snapshot" }).click();
  await taking.getByText("first was taken: full").waitFor();
  await taking.getByText("Programs were paused for").waitFor();
  const first = await client.snapshots.get("first");
  expect(first.labels).toEqual({ "it's": "1" });

  await taking.getByRole("link", { name: "Show in lineage" }).click();
  await taking.waitFor({ state: "detached" });
  await panel.getByRole("button", { name: "Restore …" }).click();
  const restoring = page.getByRole("dialog", { name: "Restore first" });
  await restoring.getByText("Memory").waitFor();
  await screenshot("dialog-restore");
  await restoring.getByLabel("Name of the new sandbox").fill("again");
  await restoring.getByRole("button", { name: "Restore", exact: true }).click();
  await restoring.getByRole("link", { name: "again" }).waitFor();
  await restoring.getByRole("button", { name: "Close" }).last().click();

  await panel.getByRole("button", { name: "Delete …" }).click();
  const removing = page.getByRole("dialog", { name: "Delete first" });
  guard.expectAnswer(409, /^\/v1\/snapshots\//);
  await removing.getByRole("button", { name: "Delete", exact: true }).click();
  await removing.getByText("snapshot_in_use").waitFor();
  await removing.getByRole("link", { name: "again" }).waitFor();
  await removing.getByRole("button", { name: "Cancel" }).click();

  await panel.getByRole("button", { name: "Name and labels …" }).click();
  const naming = page.getByRole("dialog", { name: "Name and labels of first" });
  await naming.getByLabel("Name", { exact: true }).fill("second");
  await naming.getByRole("button", { name: "Remove label it's" }).click();
  await naming.getByRole("button", { name: "Save", exact: true }).click();
  await naming.getByText("Renamed to second").waitFor();
  expect((await client.snapshots.get(first.id)).labels).toEqual({});
});

test("a rewind shows the changes that it undoes; a fork creates several sandboxes", async () => {
  const { page, client, open, screenshot } = await startConsole({ path: false });
  const web = await Sandbox.create({ client, name: "web" });
  await web.snapshot({ name: "clean" });
  await web.files.write("/workspace/mistake", "oh no");
  await open(`/lineage?focus=${web.id}`);
  const panel = page.getByRole("complementary");
  await panel.getByRole("button", { name: "Rewind …" }).click();
  const rewinding = page.getByRole("dialog", { name: "Rewind web" });
  await rewinding.getByText("1 added since then are deleted").waitFor();
  await screenshot("dialog-rewind");
  await rewinding.getByRole("button", { name: "Rewind", exact: true }).click();
  await rewinding.getByText("was rewound to the snapshot").waitFor();
  expect(await web.files.list("/workspace")).toEqual([]);
  await page.keyboard.press("Escape");

  await panel.getByRole("button", { name: "Fork …" }).click();
  const forking = page.getByRole("dialog", { name: "Fork web" });
  await forking.getByLabel("Copies").fill("3");
  await forking.getByLabel("Name").fill("try");
  await forking.getByText("The copies are named try-1 to try-3.").waitFor();
  await forking.getByRole("button", { name: "Create 3 copies" }).click();
  await forking.getByText("3 copies were created.").waitFor();
  await forking.getByRole("link", { name: "try-3" }).click();
  await page.waitForURL(/\/sandboxes\//);
  await forking.waitFor({ state: "detached" });
});

test("a fork is promoted, and its original has the state", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const work = await Sandbox.create({ client, name: "work" });
  const [fix] = await work.fork({ count: 2, name: "fix" });
  await fix?.files.write("/workspace/fixed", "yes");
  await open(`/sandboxes/${fix?.id}/timeline`);
  await page.getByRole("group", { name: "Actions" }).getByRole("button", { name: "Promote …" }).click();
  const dialog = page.getByRole("dialog", { name: "Promote fix-1" });
  await dialog.getByLabel("Delete the other forks of work too").check();
  await dialog.getByRole("button", { name: "Promote", exact: true }).click();
  await dialog.getByText("1 other fork was deleted.").waitFor();
  await dialog.getByRole("link", { name: "work" }).click();
  await page.waitForURL(new RegExp(`/sandboxes/${work.id}`));
  expect((await work.files.list("/workspace")).map(({ name }) => name)).toEqual(["fixed"]);
  expect((await Array.fromAsync(Sandbox.list({ state: "running" }, { client }))).map(({ id }) => id)).toEqual([
    work.id,
  ]);
});

test("a handoff goes to the other server of the store", async () => {
  const { page, client, open, servers } = await startConsole({ path: false, instances: 2 });
  const web = await Sandbox.create({ client, name: "web" });
  const other = servers[1]?.parts?.instances?.instanceId ?? "";
  await open(`/sandboxes/${web.id}/timeline`);
  await chooseAction(page, "Hand off …");
  const dialog = page.getByRole("dialog", { name: "Hand off web" });
  await dialog.getByRole("button", { name: "Hand off", exact: true }).click();
  await dialog.getByText("Moved from").waitFor();
  expect((await web.refresh()).owner?.instanceId).toBe(other);
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByText(`State: at ${other}`).waitFor();
  await page
    .getByRole("button", { name: `Handed off to ${other}` })
    .first()
    .waitFor();
});

test("a single server offers no handoff", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const web = await Sandbox.create({ client, name: "web" });
  await open(`/sandboxes/${web.id}/timeline`);
  await chooseAction(page, "Hand off …");
  await page.getByText("No other server uses this store.").waitFor();
  expect(await page.getByRole("button", { name: "Hand off", exact: true }).isDisabled()).toBe(true);
});

test("a dialog focuses its first field; a warning focuses the cancel button", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client, name: "asked-about" });
  await open(`/sandboxes/${sandbox.id}/facts`);
  await page.getByRole("button", { name: "Fork …" }).click();
  await page.getByRole("spinbutton", { name: "Copies" }).waitFor();
  const focused = (): Promise<string> =>
    page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.tagName ?? "");
  await expect.poll(focused).toBe("INPUT");
  await page.keyboard.press("Escape");
  await chooseAction(page, "Delete …");
  await page.getByRole("dialog", { name: /^Delete .*\?$/ }).waitFor();
  await expect.poll(focused).toBe("Close");
});
