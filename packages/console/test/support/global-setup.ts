/** For the project `console`: the console is built and one browser started, once for all files. */
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import type { TestProject } from "vitest/node";
import { bootstrap } from "../../../../scripts/bootstrap.mjs";
import { findChromium } from "../../../../test/kit/services/chromium.ts";
import { SCREENSHOTS } from "./screenshots.ts";

export interface BrowserOfRun {
  /** Where the one browser listens. */
  readonly endpoint: string;
  /** The built console, which nobody changes while tests run. */
  readonly folder: string;
}

declare module "vitest" {
  interface ProvidedContext {
    consoleBrowser: BrowserOfRun;
  }
}

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const found = await findChromium();
  if ("missing" in found) throw new Error(found.missing);
  await rm(SCREENSHOTS, { recursive: true, force: true });
  const folder = join(await mkdtemp(join(tmpdir(), "sandboxer-console-")), "dist");
  await build(folder);
  const browser = await chromium.launchServer({
    executablePath: found.path,
    env: { ...process.env, ...found.env },
    // Chromium's own sandbox refuses to work for root.
    chromiumSandbox: process.getuid?.() !== 0,
    args: ["--disable-dev-shm-usage"],
  });
  project.provide("consoleBrowser", { endpoint: browser.wsEndpoint(), folder });
  return async () => {
    await browser.close();
    await rm(join(folder, ".."), { recursive: true, force: true });
  };
}

/** Copies the build, so that nobody changes it while tests run. `SANDBOXER_TEST_CONSOLE` names one to use directly. */
async function build(folder: string): Promise<void> {
  const given = process.env["SANDBOXER_TEST_CONSOLE"];
  if (given !== undefined) return cp(given, folder, { recursive: true });
  const said: string[] = [];
  await bootstrap(undefined, (line: string) => void said.push(line));
  const failure = said.find((line) => line.includes("could not be built"));
  if (failure !== undefined) throw new Error(failure);
  await mkdir(folder, { recursive: true });
  await cp(DIST, folder, { recursive: true });
}
