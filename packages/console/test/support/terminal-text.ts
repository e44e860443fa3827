import type { Page } from "playwright-core";

/** The text of the terminal in front, with wrapped lines joined again. */
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

/**
 * Counts in a terminal, ten numbers to a row: of a row that was full to the terminal's last column the last character was once missing, when
 * the page had given the terminal another height at that moment. It seems that xterm.js then forgets that the next one belongs to the next row.
 */
export function countTo(last: number, pauseSeconds: number): { readonly command: string; readonly shown: string } {
  const one = `printf '%d,' $i; [ $((i % 10)) -ne 0 ] || echo; sleep ${pauseSeconds}`;
  const shown = Array.from({ length: last }, (_, at) => `${at + 1},`).join("");
  return { command: `for i in $(seq 1 ${last}); do ${one}; done; sleep 1000`, shown };
}
