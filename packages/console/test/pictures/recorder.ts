import type { Page } from "playwright-core";
import { encodeAnimation, type Frame } from "./animated-png.ts";
import { decodePng } from "./png.ts";

/** A slow machine must not make a slow film. */
const LONGEST_MS = 250;

/** Films a page from now on; `stop` returns the animated PNG. `holdMs`: how long the last frame is shown. */
export function record(page: Page): { stop(holdMs: number): Promise<Buffer> } {
  const stopping = new AbortController();
  const taken: { png: Buffer; atMs: number }[] = [];
  const filming = (async () => {
    while (!stopping.signal.aborted) {
      const atMs = performance.now();
      taken.push({ png: await page.screenshot(), atMs });
      await page.waitForTimeout(Math.max(0, 100 - (performance.now() - atMs)));
    }
  })();
  return {
    stop: async (holdMs) => {
      stopping.abort();
      await filming;
      const frames = taken.map(({ png, atMs }, at): Frame => {
        const next = taken[at + 1];
        const shownMs = next === undefined ? holdMs : Math.min(LONGEST_MS, next.atMs - atMs);
        return { pixels: decodePng(png), shownMs };
      });
      return encodeAnimation(frames);
    },
  };
}
