import type { Page } from "playwright-core";

export interface ConsolePage {
  /** For screenshots. */
  readonly name: string;
  readonly path: string;
}

const TABS = ["run", "processes", "network", "files", "metrics", "facts", "timeline"] as const;

/** Every page of the console, with a sandbox whose tabs are shown. */
export function everyPage(sandboxId: string): readonly ConsolePage[] {
  return [
    { name: "sandboxes", path: "/" },
    { name: "sandbox-terminal", path: `/sandboxes/${sandboxId}` },
    ...TABS.map((tab) => ({ name: `sandbox-${tab}`, path: `/sandboxes/${sandboxId}/${tab}` })),
    { name: "lineage", path: "/lineage" },
    { name: "images", path: "/images" },
    { name: "instances", path: "/instances" },
    { name: "nothing-here", path: "/no/such/page" },
  ];
}

/** Goes there within the console, as its links do; the page must be open. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, path);
  await untilShown(page);
}

/** Until the page shows a heading, and nothing is loading any more. */
export async function untilShown(page: Page): Promise<void> {
  await page.locator("main h1, main h2").first().waitFor();
  await page.waitForFunction(
    () => document.querySelector("main [aria-busy=true], main .loading, main .page-note") === null,
  );
}

/** Whether the page is wider than the window, so that it would have to be scrolled sideways. */
export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth > clientWidth;
  });
}
