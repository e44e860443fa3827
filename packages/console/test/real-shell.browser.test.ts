import { Sandbox } from "@sandboxer/client";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { whyNoEngine } from "../../../test/kit/server/server-process.ts";
import { startConsole } from "./support/start-console.ts";
import { untilTerminalShows } from "./support/terminal-text.ts";

async function type(page: Page, line: string): Promise<void> {
  await page.locator(".xterm-helper-textarea:visible, .xterm-helper-textarea").first().focus();
  await page.keyboard.type(line);
  await page.keyboard.press("Enter");
}

test.skipIf(whyNoEngine() !== undefined)(
  "on gVisor: a shell's variable survives a checkpoint and a fork, and its file is shown",
  async () => {
    const { page, client, open, guard, screenshot } = await startConsole({ backend: "gvisor", path: false });
    const sandbox = await Sandbox.create({ client, name: "real" });
    guard.expectAnswer(409, new RegExp(`^/v1/sandboxes/${sandbox.id}/`));
    await open(`/sandboxes/${sandbox.id}`);
    await untilTerminalShows(page, "$");
    await type(page, "x=41; echo from the shell > /workspace/note.txt; echo =$((x + 1))=");
    await untilTerminalShows(page, "=42=");
    await screenshot("gvisor-terminal");

    await page.getByRole("button", { name: "Fork …" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("real-copy");
    await dialog.getByRole("button", { name: "Create a copy" }).click();
    await dialog.getByText("1 copy was created").waitFor();
    await dialog.getByRole("link", { name: "real-copy" }).click();
    await page.getByRole("heading", { name: "real-copy" }).waitFor();
    await untilTerminalShows(page, "=42=");
    await type(page, "echo =$((x + 2))=");
    await untilTerminalShows(page, "=43=");

    await open(`/sandboxes/${sandbox.id}`);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByRole("heading", { name: "Paused" }).waitFor();
    expect((await sandbox.refresh()).state).toBe("stored");
    await page.getByRole("button", { name: "Resume", exact: true }).click();
    await untilTerminalShows(page, "=42=");
    await type(page, "echo =$((x + 3))=");
    await untilTerminalShows(page, "=44=");

    await page.getByRole("link", { name: "Files" }).click();
    await page.getByRole("link", { name: "note.txt" }).click();
    await page.getByText("from the shell").filter({ visible: true }).first().waitFor();
  },
  120_000,
);
