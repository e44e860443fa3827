import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import { whyNoEngine } from "../../../test/kit/server/server-process.ts";
import { startConsole } from "./support/start-console.ts";
import { untilTerminalShows } from "./support/terminal-text.ts";

test.skipIf(whyNoEngine() !== undefined)(
  "a real shell opens automatically with colours, its size, copy and paste, and survives a flood of output",
  async () => {
    const { page, client, open, screenshot } = await startConsole({ backend: "gvisor", path: false });
    const sandbox = await Sandbox.create({ client, name: "shell" });
    await open(`/sandboxes/${sandbox.id}`);
    await untilTerminalShows(page, "$");
    // Colours outside the theme need style attributes, which the policy forbids as text.
    await page.keyboard.type(String.raw`printf '\033[38;2;200;10;50mred\033[0m\n'; echo do''ne` + "\n");
    await untilTerminalShows(page, "done");
    await screenshot("terminal");

    // A program in front, in a group of its own, hears of a new size, and of Ctrl+C: a shell would take no notice of that when the program
    // that it waits for happens to end in the same moment.
    const tell = "print(*os.get_terminal_size(), flush=True)";
    const wait = `signal.signal(signal.SIGWINCH, lambda *_: ${tell}); print("rea" "dy", flush=True); time.sleep(1000)`;
    await page.keyboard.type(`python3 -c 'import os, signal, time; ${wait}'\n`);
    await untilTerminalShows(page, "ready");
    await page.setViewportSize({ width: 700, height: 620 });
    await expect.poll(() => page.locator(".xterm-rows").innerText()).toMatch(/ready\s+\d+ \d+/);
    await page.keyboard.press("Control+c");
    await page.keyboard.type("clear; stty size\n");
    // At the shell's next prompt: before it, the shell takes pasted text for typed text.
    await expect.poll(() => page.locator(".xterm-rows").innerText()).toMatch(/^\d+ \d+\n.*\$/);

    // Pasted text is no command before Enter, whatever it contains.
    await page.evaluate(() => navigator.clipboard.writeText("echo pa''sted\necho tw''ice"));
    await page.keyboard.press("Control+Shift+v");
    await untilTerminalShows(page, "echo tw''ice");
    expect(await page.locator(".xterm-rows").innerText()).not.toContain("pasted");
    await page.keyboard.press("Enter");
    await untilTerminalShows(page, "twice");

    await page.locator(".xterm-rows > div", { hasText: /^twice/ }).dblclick({ position: { x: 12, y: 6 }, force: true });
    await page.keyboard.press("Control+Shift+c");
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe("twice");

    await page.keyboard.type("yes\n");
    // The flood, not the echo: earlier input would go to the shell.
    await untilTerminalShows(page, "yyyy");
    await page.keyboard.press("Control+c");
    await page.keyboard.type("echo en''ded\n");
    await untilTerminalShows(page, "ended");

    // The keyboard is not trapped in it.
    await page.keyboard.press("Control+Shift+ArrowUp");
    expect(await page.getByRole("tab", { selected: true }).evaluate((tab) => tab === document.activeElement)).toBe(
      true,
    );

    await page.getByRole("button", { name: "New terminal", exact: true }).click();
    await page.getByRole("tab", { name: "Terminal 2" }).waitFor();
    await untilTerminalShows(page, "$");
    await page.keyboard.type("exit 3\n");
    await page.getByText("Ended with exit code 3").waitFor();
  },
);
