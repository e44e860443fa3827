import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";

/** Not kept by git; looked at by people. Those of the last run. */
export const SCREENSHOTS = fileURLToPath(new URL("../../../../build/console-screenshots", import.meta.url));

/** Where nobody would look at them, as in a run of everything, they are not worth their time. */
const ARE_WANTED = process.env["SANDBOXER_TEST_PICTURES"] !== "none";

/** What the page looks like now, light and dark: `NAME-light.png`, `NAME-dark.png`. */
export async function takeScreenshots(page: Page, name: string): Promise<void> {
  if (!ARE_WANTED) return;
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await takeScreenshot(page, `${name}-${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: null });
}

export async function takeScreenshot(page: Page, name: string): Promise<void> {
  if (!ARE_WANTED) return;
  await mkdir(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), animations: "disabled" });
}

/** What the pages of a test looked like when it failed. */
export async function keepFailures(pages: readonly Page[], test: string): Promise<void> {
  const name = test.replaceAll(/[^\w-]+/g, "-").slice(0, 80);
  for (const [at, page] of pages.entries()) {
    await page
      .screenshot({ path: join(SCREENSHOTS, `failed-${name}-${at}.png`), timeout: 5_000 })
      .catch(() => undefined);
  }
}
