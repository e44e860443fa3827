import type { Page } from "playwright-core";

declare global {
  interface Window {
    told?: Set<string>;
  }
}

/** Records the texts of the page's banners from now on, however short they are visible. */
export async function listenToBanners(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(() => {
    const told = (window.told = new Set<string>());
    const look = (): void => {
      for (const banner of document.querySelectorAll(".banner")) told.add(banner.textContent);
    };
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  return () => page.evaluate(() => [...(window.told ?? [])]);
}
