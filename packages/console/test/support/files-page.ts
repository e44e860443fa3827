import type { Locator, Page } from "playwright-core";

/** The machine may be busy with other tests. */
export const WAIT = { timeout: 60_000 };
export const link = (page: Page, name: string): Locator => page.getByRole("link", { name, exact: true });
export const chooseInMenu = async (page: Page, name: string, item: string): Promise<void> => {
  await page.getByRole("button", { name: `Actions for ${name}`, exact: true }).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
};
export const go = async (page: Page, path: string): Promise<void> => {
  await page.getByLabel("Go to a path").fill(path);
  await page.keyboard.press("Enter");
};
/** The listed names as displayed. */
export const listed = (page: Page): Promise<string[]> => page.locator(".entry-link").allTextContents();

export async function saved(page: Page, click: () => Promise<void>): Promise<{ name: string; bytes: Buffer }> {
  const [download] = await Promise.all([page.waitForEvent("download"), click()]);
  const bytes = await Array.fromAsync(await download.createReadStream());
  return { name: download.suggestedFilename(), bytes: Buffer.concat(bytes as Buffer[]) };
}
