import { once } from "node:events";
import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import { isTooWide } from "./support/every-page.ts";
import { takeScreenshot } from "./support/screenshots.ts";
import { startConsole, type TestConsole } from "./support/start-console.ts";

const PROXY_PORT = 3128;

/** Asks the proxy of a sandbox for a host, as a program inside does; returns the first line of the answer. */
async function askProxy({ server }: TestConsole, sandbox: Sandbox, host: string): Promise<string> {
  const program = server.parts?.backend.dial(sandbox.id, PROXY_PORT);
  program?.write(`GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  const [first] = program === undefined ? [] : ((await once(program, "data")) as [Buffer]);
  program?.destroy();
  return first?.toString().split("\r\n")[0] ?? "";
}

test("refused connections are listed live, and the policy can be changed", async () => {
  const console = await startConsole({ path: false });
  const { page, client, open, screenshot } = console;
  const sandbox = await Sandbox.create({ client, name: "careful", network: { allow: ["pypi.org"] } });
  await open(`/sandboxes/${sandbox.id}/network`);
  await page.getByText("No connection was refused.").waitFor();
  await page.getByRole("region", { name: "Policy" }).getByText("pypi.org").first().waitFor();

  for (const host of ["evil.example", "evil.example", "<script>window.pwned=1</script>.example"]) {
    expect(await askProxy(console, sandbox, host)).toMatch(/ 40[03] /);
  }
  const row = page.getByRole("region", { name: "Refused connections" }).getByRole("row", { name: /evil\.example:80/ });
  await row.getByRole("cell", { name: "2", exact: true }).waitFor();
  await row.getByText("not in allow").waitFor();
  await screenshot("network");
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await isTooWide(page)).toBe(false);
  await takeScreenshot(page, "network-360");
  await page.setViewportSize({ width: 1280, height: 800 });

  const change = page.getByRole("button", { name: "Change policy", exact: true });
  await page.getByLabel("New policy").fill("not a policy");
  await page.getByText("This is not a policy.").waitFor();
  expect(await change.isDisabled()).toBe(true);
  await page.getByLabel("New policy").fill("open,!bad.example");
  await change.click();
  await expect.poll(async () => (await sandbox.refresh()).network).toEqual({ deny: ["bad.example"] });
  await page.getByRole("region", { name: "Policy" }).getByText("!bad.example", { exact: true }).waitFor();

  await sandbox.checkpoint();
  await page.getByText("no: it is paused").waitFor();
});

test("a key with the scope read sees the policy and cannot change it", async () => {
  const { page, client, open } = await startConsole({ path: false, keys: "read" });
  const sandbox = await Sandbox.create({ client, name: "watched" });
  await open(`/sandboxes/${sandbox.id}/network`);
  await page.getByRole("region", { name: "Policy" }).getByText("none", { exact: true }).waitFor();
  expect(await page.getByLabel("New policy").count()).toBe(0);
});
