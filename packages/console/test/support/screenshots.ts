import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";

/** The screenshots of the last run, for people; not kept by git. */
export const SCREENSHOTS = fileURLToPath(new URL("../../../../build/console-screenshots", import.meta.url));

/** In a run of all suites nobody looks at them, so they are not taken. */
const ARE_WANTED = process.env["SANDBOXER_TEST_PICTURES"] !== "none";

/** Pictures of the page, light and dark: `NAME-light.png`, `NAME-dark.png`. */
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

/** Pictures of the pages of a failed test. */
export async function keepFailures(pages: readonly Page[], test: string): Promise<void> {
  const name = test.replaceAll(/[^\w-]+/g, "-").slice(0, 80);
  for (const [at, page] of pages.entries()) {
    await page
      .screenshot({ path: join(SCREENSHOTS, `failed-${name}-${at}.png`), timeout: 5_000 })
      .catch(() => undefined);
  }
}
