import type { Page } from "playwright-core";

/** What the terminal in front shows, its rows put together: a line that was broken at the edge is whole again. */
export function terminalText(page: Page): Promise<string> {
  return page.evaluate(() => {
    const shown = [...document.querySelectorAll<HTMLElement>(".xterm-rows")].find((rows) => rows.offsetParent !== null);
    const rows = [...(shown?.children ?? [])].map((row) => row.textContent.replaceAll("\u00A0", " ").trimEnd());
    return rows.join("");
  });
}

/** Waits until the terminal shows a text. */
export async function untilTerminalShows(page: Page, text: string): Promise<void> {
  await page.waitForFunction((wanted) => {
    const shown = [...document.querySelectorAll<HTMLElement>(".xterm-rows")].find((rows) => rows.offsetParent !== null);
    const rows = [...(shown?.children ?? [])].map((row) => row.textContent.replaceAll("\u00A0", " ").trimEnd());
    return rows.join("").includes(wanted);
  }, text);
}
