import { expect, test } from "vitest";
import { Sandbox } from "@sandboxer/client";
import { startConsole } from "./support/start-console.ts";

test("the list shows a sandbox, and one that is made meanwhile", async () => {
  const { page, client, screenshot } = await startConsole();
  await Sandbox.create({ client, name: "first" });
  await page.getByText("first").waitFor();
  await Sandbox.create({ client, name: "second" });
  await page.getByText("second").waitFor();
  expect(await page.title()).toContain("sandboxer");
  await screenshot("shell");
});
