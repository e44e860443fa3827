import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import { startConsole } from "./support/start-console.ts";

test("facts show settings and owner; name, times and reachability can be changed and checked", async () => {
  const { page, client, open, screenshot } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({
    client,
    name: "known",
    labels: { team: "ml" },
    ttl: "1h",
    maxLoss: "5m",
    restart: "always",
    affinity: { prefer: { pool: "gpu" } },
  });
  await open(`/sandboxes/${sandbox.id}/facts`);
  const made = page.getByRole("region", { name: "Identity", exact: true });
  await made.getByText("team=ml").waitFor();
  const lease = page.getByRole("region", { name: "Lease" });
  await lease.getByText("this server").waitFor();
  await page.getByRole("region", { name: "Saved states" }).getByText("the last 5m").waitFor();
  await page.getByRole("region", { name: "Saved states" }).getByText("another server resumes it").waitFor();
  await page.getByRole("region", { name: "Configuration" }).getByText("pool=gpu").waitFor();
  await lease.getByRole("button", { name: "Check reachability", exact: true }).click();
  await lease.getByText(/^yes, after/).waitFor();
  await screenshot("facts");

  await page.getByLabel("New lifetime from now").fill("10h");
  await page.getByRole("button", { name: "Extend", exact: true }).click();
  await page.getByText("Extend: done").waitFor();
  await page.getByText(/^(9h 59m|10h)$/).waitFor();
  await page.getByLabel("New idle timeout").fill("2h");
  await page.getByRole("button", { name: "Change idle timeout", exact: true }).click();
  await expect.poll(async () => (await sandbox.refresh()).idleTimeout).toBe(7200);
  await page.getByLabel("New idle timeout").fill("soon");
  await page.getByRole("button", { name: "Change idle timeout", exact: true }).click();
  await page.getByText(/soon/).first().waitFor();

  await made.getByRole("button", { name: "Change the name" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox").first().fill("better-known");
  await dialog.getByRole("button", { name: /^(Save|Rename)/ }).click();
  await page.getByRole("heading", { name: "better-known" }).waitFor();
});

test("the token of a new sandbox is shown once", async () => {
  const { page } = await startConsole();
  await page.getByRole("button", { name: "New sandbox" }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Create", exact: true }).click();
  await page.waitForURL(/\/sandboxes\//);
  await page.getByRole("link", { name: "Facts" }).click();
  const token = page.getByRole("region", { name: "Token" });
  expect((await token.locator("code").textContent())?.length).toBeGreaterThan(20);
  await page.reload();
  await page.getByRole("region", { name: "Lease" }).waitFor();
  expect(await token.count()).toBe(0);
});

test("metrics are drawn, and listed as numbers", async () => {
  const { page, client, open, screenshot } = await startConsole({ path: false });
  const sandbox = await Sandbox.create({ client, name: "measured" });
  await open(`/sandboxes/${sandbox.id}/metrics`);
  const memory = page.getByRole("region", { name: "Memory" });
  await memory.locator("canvas").waitFor();
  await memory.getByText("As numbers").click();
  await memory
    .getByRole("cell", { name: /^\d+(\.\d+)? (KiB|MiB|B)$/ })
    .first()
    .waitFor();
  await page.getByRole("button", { name: "30 minutes" }).click();
  await memory.locator("canvas").waitFor();
  await screenshot("metrics");
});

test("instances lists every server of the store with its sandboxes, and the capabilities of a server", async () => {
  const { page, client, servers, open, screenshot } = await startConsole({ instances: 2, path: false });
  const here = await Sandbox.create({ client, name: "here" });
  const there = await Sandbox.create({ client: servers[1]?.client ?? client, name: "there" });
  await open("/instances");
  await page.getByRole("article").getByText("this server").waitFor();
  await expect.poll(() => page.getByRole("article").count()).toBe(2);
  const other = page.getByRole("article").filter({ hasNotText: "this server" });
  await other.getByRole("link", { name: "there" }).waitFor();
  await screenshot("instances");
  await here.handoff(servers[1]?.url ?? "");
  await other.getByRole("link", { name: "here" }).waitFor();
  await page.getByRole("region", { name: "Backend capabilities" }).getByText("fake").waitFor();
  await there.destroy();
});

test("a server without a store explains the benefits of a store", async () => {
  const { page } = await startConsole({ path: "/instances", store: false });
  await page.getByRole("heading", { name: "This server has no store" }).waitFor();
});
