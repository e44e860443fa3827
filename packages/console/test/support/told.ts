import type { Page } from "playwright-core";

declare global {
  interface Window {
    told?: Set<string>;
  }
}

/** Keeps what the page tells in its banners from now on, however short it is there. */
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
