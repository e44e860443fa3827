import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, inject, test } from "vitest";
import { startConsole } from "./support/start-console.ts";

test("less than 150 KB, gzipped, are loaded before a terminal", async () => {
  const { page, url } = await startConsole();
  await page.getByRole("heading", { name: "Sandboxes", exact: true }).waitFor();
  const loaded = await page.evaluate(() =>
    performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname),
  );
  const files = loaded.filter((path) => path.startsWith("/assets/"));
  expect(files.some((path) => path.endsWith(".js"))).toBe(true);
  const contents = await Promise.all(files.map((path) => readFile(join(inject("consoleBrowser").folder, path))));
  const answerOfPage = Buffer.from(await (await fetch(url, { headers: { accept: "text/html" } })).arrayBuffer());
  const bytes = [answerOfPage, ...contents].reduce((sum, content) => sum + gzipSync(content).length, 0);
  expect(bytes).toBeLessThan(150 * 1024);
});
