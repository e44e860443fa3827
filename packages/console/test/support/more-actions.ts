import type { Page } from "playwright-core";

/** Chooses an item of the menu in a sandbox's header. */
export async function chooseAction(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name, exact: true }).click();
}
