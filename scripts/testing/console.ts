import { findChromium } from "../../test/kit/services/chromium.ts";
import type { Planned } from "./engines.ts";
import { vitestSuite } from "./suite.ts";

const CONSOLE_TIMEOUT_MS = 15 * 60_000;

/** The console in a browser: most of it on the fake backend, the rest on the newest runsc, if there is one. */
export async function planConsoleSuite(gvisorSuites: readonly Planned[], pictures: "kept" | "none"): Promise<Planned> {
  const found = await findChromium();
  if ("missing" in found) return { name: "console", on: "a browser", skippedBecause: found.missing };
  const engine = gvisorSuites.findLast((suite) => "env" in suite);
  const env = { SANDBOXER_TEST_PICTURES: pictures };
  if (engine === undefined || !("env" in engine)) {
    return vitestSuite("console", CONSOLE_TIMEOUT_MS, "the fake backend", env);
  }
  return vitestSuite("console", CONSOLE_TIMEOUT_MS, `the fake backend and ${engine.on}`, { ...engine.env, ...env });
}
