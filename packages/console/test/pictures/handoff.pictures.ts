import { writeFile } from "node:fs/promises";
import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import { chooseAction } from "../support/more-actions.ts";
import { startConsole } from "../support/start-console.ts";
import { untilTerminalShows } from "../support/terminal-text.ts";
import { pictureFile } from "./picture-file.ts";
import { record } from "./recorder.ts";

const MOST_BYTES = 1_500_000;

test("a handoff under a running terminal", async () => {
  const { page, client, open, guard } = await startConsole({
    backend: "gvisor",
    instances: 2,
    path: false,
    browser: { viewport: { width: 900, height: 560 }, colorScheme: "dark", reducedMotion: "reduce" },
  });
  guard.expectAnswer(409, /./);
  const sandbox = await Sandbox.create({ client, name: "agent-web" });
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, "$");
  await page.locator(".xterm-helper-textarea").first().focus();
  const film = record(page);
  await page.keyboard.type(`for i in $(seq 1 60); do echo "counting: $i"; sleep 0.25; done`, { delay: 15 });
  await page.keyboard.press("Enter");
  await untilTerminalShows(page, "counting: 5");
  await chooseAction(page, "Hand off …");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Hand off", exact: true }).click();
  // It continues without the dialog, and the terminal is visible.
  await page.keyboard.press("Escape");
  await page
    .getByText(/The sandbox now runs on|Moved /)
    .first()
    .waitFor();
  await untilTerminalShows(page, "counting: 30");
  const animation = await film.stop(2_000);
  expect(animation.length).toBeLessThan(MOST_BYTES);
  await writeFile(await pictureFile("handoff.png"), animation);
}, 180_000);
