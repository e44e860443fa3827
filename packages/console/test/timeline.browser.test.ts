import { expect, test } from "vitest";
import { Sandbox } from "@sandboxer/client";
import { startConsole } from "./support/start-console.ts";

test("events of a sandbox are drawn live, and their details can be shown", async () => {
  const { page, client, open, screenshot } = await startConsole({ path: false });
  const web = await Sandbox.create({ client, name: "web" });
  await open(`/sandboxes/${web.id}/timeline`);
  const chart = page.getByRole("group", { name: /Events over time/ });
  const list = page.getByRole("region", { name: "Events" });
  await list.getByText("State: running").waitFor();

  await web.exec("echo '<b>hello</b>'; exit 3");
  await web.snapshot({ name: "point" });
  const row = list.getByRole("row", { name: /exit 3/ });
  await row.waitFor();
  await list.getByRole("button", { name: "Snapshot point" }).click();
  const details = page.getByRole("region", { name: "Details: Snapshot point" });
  await details.getByText("full", { exact: true }).waitFor();
  await screenshot("timeline");

  // The same in the drawing, with the keyboard.
  const mark = chart.getByRole("button", { name: /Checkpoints and snapshots: Snapshot point/ });
  expect(await mark.getAttribute("aria-pressed")).toBe("true");
  await mark.focus();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  const focused = await page.evaluate(() => document.activeElement?.querySelector("title")?.textContent);
  expect(focused).toContain("Executions: ");
  await page.keyboard.press("Enter");
  await page
    .getByRole("region", { name: /Details: .*hello/ })
    .getByRole("link", { name: "Its output" })
    .click();
  await page.waitForURL(/\/processes\?process=/);
  await page.goBack();

  await page.getByLabel("Show", { exact: true }).selectOption({ label: "Checkpoints and snapshots" });
  await page.getByText("1 found").waitFor();
  await web.checkpoint();
  await page.getByText("2 found").waitFor();
  await page.getByLabel("Show", { exact: true }).selectOption({ label: "States" });
  await list.getByText("State: paused").waitFor();
  await list.getByText("State: saving").waitFor();
});

test("the drawing can be zoomed and moved", async () => {
  const { page, client, open } = await startConsole({ path: false });
  const web = await Sandbox.create({ client, name: "web" });
  await web.exec("true");
  await open(`/sandboxes/${web.id}/timeline`);
  await page.getByText("following").waitFor();
  const chart = page.getByRole("group", { name: /Events over time/ });
  const mark = chart.getByRole("button", { name: /Executions: / }).first();
  await mark.focus();
  const before = (await mark.boundingBox())?.x ?? 0;
  await page.keyboard.press("+");
  await page.getByText("following").waitFor({ state: "detached" });
  await page.keyboard.press("Shift+ArrowLeft");
  await expect.poll(async () => (await mark.boundingBox())?.x ?? before).not.toBe(before);
  await page.getByRole("button", { name: "1 h" }).click();
  await page.getByText("following").waitFor();
});
