import { Sandbox, type Sandboxer } from "@sandboxer/client";
import type { Page } from "playwright-core";
import { test } from "vitest";
import { untilShown } from "../support/every-page.ts";
import { startConsole } from "../support/start-console.ts";
import { untilTerminalShows } from "../support/terminal-text.ts";
import { pictureFile } from "./picture-file.ts";

async function take(page: Page, name: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: await pictureFile(`${name}-${colorScheme}.png`), animations: "disabled" });
  }
}

const BUSY = "python3 -c 'x = [0] * 3000000\nwhile True: sum(x[:200000]); __import__(\"time\").sleep(0.2)'";

/** A family of sandboxes, some of which are busy. */
async function furnish(client: Sandboxer, other: Sandboxer): Promise<Sandbox> {
  const names = ["agent-docs", "build-cache", "nightly-report"];
  for (const [at, name] of names.entries()) {
    const labels = { team: at === 1 ? "infra" : "docs" };
    const each = await Sandbox.create({ client: at === 2 ? other : client, name, labels, ttl: "4h" });
    if (at === 1) await each.checkpoint();
  }
  const sandbox = await Sandbox.create({ client, name: "agent-web", labels: { team: "ml", stage: "trial" } });
  await sandbox.files.write("/workspace/plan.md", "# Plan\n\n1. Try it\n2. Keep what works\n");
  await sandbox.exec("echo ready");
  await sandbox.snapshot({ name: "clean" });
  (await sandbox.spawn(BUSY, { detach: true })).detach();
  await sandbox.exec("seq 1 200000 > /workspace/data.txt; sleep 1");
  await sandbox.snapshot({ name: "with-data" });
  await sandbox.exec("grep -c 9 /workspace/data.txt; exit 3");
  const copies = await sandbox.fork({ count: 2, name: "attempt" });
  await copies[0]?.exec("echo better > /workspace/result.txt");
  await copies[0]?.snapshot({ name: "kept" });
  await copies[1]?.checkpoint();
  return sandbox;
}

test("the pages that the README shows", async () => {
  const { page, client, servers, open, guard } = await startConsole({
    backend: "gvisor",
    instances: 2,
    path: false,
    browser: { viewport: { width: 1120, height: 640 }, reducedMotion: "reduce" },
  });
  guard.expectAnswer(409, /./);
  const sandbox = await furnish(client, servers[1]?.client ?? client);
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, "$");
  await page.locator(".xterm-helper-textarea").first().focus();
  for (const line of ["cd /workspace && ls -l", "python3 -q", "squares = [n * n for n in range(10)]", "squares"]) {
    await page.keyboard.type(line);
    await page.keyboard.press("Enter");
  }
  await untilTerminalShows(page, "[0, 1, 4, 9");
  await take(page, "terminal");
  await open(`/sandboxes/${sandbox.id}/timeline`);
  await untilShown(page);
  await take(page, "timeline");
  await open("/lineage");
  await untilShown(page);
  await page.locator("main text", { hasText: "attempt-2" }).first().waitFor();
  await take(page, "lineage");
  await open("/");
  await untilShown(page);
  await page.getByText("agent-web").first().waitFor();
  // The memory of the last seconds is drawn.
  await page.locator("main svg polyline[points*=' '][points*='64.0']").first().waitFor({ state: "attached" });
  await take(page, "sandboxes");
});
