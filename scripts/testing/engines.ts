import { homedir } from "node:os";
import { parseConfig } from "@sandboxer/server/config";
import {
  buildNewestEngine,
  choosePlatform,
  findGo,
  locateEngine,
  PINNED_SOURCES,
  prepareAgent,
  thisHost,
  whyNotGvisor,
  withSetupLock,
  type Engine,
  type SetupContext,
} from "@sandboxer/server/setup";
import { prepareGvisorTools, withGvisorTools } from "../../packages/server/test/services/gvisor-tools.ts";
import { inOwnNetwork } from "./own-network.ts";
import { vitestSuite, type Suite } from "./suite.ts";

const GVISOR_TIMEOUT_MS = 20 * 60_000;

const config = parseConfig({ flags: {}, env: process.env, homeDirectory: homedir() });
export const context: SetupContext = {
  cacheDirectory: config.cacheDirectory,
  searchPath: config.searchPath,
  platform: "auto",
  report: (step) => {
    if (step.state !== "start") process.stdout.write(`set-up: ${step.state}: ${step.message}\n`);
  },
};

export type Planned = Suite | { readonly name: string; readonly on: string; readonly skippedBecause: string };

/**
 * The gVisor suite once for each engine: the pinned one of 2024, and the newest where Go can build it. What a run tests
 * is told to the tests by `SANDBOXER_TEST_RUNSC`, `…_RUNSC_VERSION`, `…_RUNSC_SHA256`, `…_PLATFORM` and `…_AGENT`; other
 * programs that they need are in the `PATH`.
 */
export async function planGvisorSuites(): Promise<Planned[]> {
  const why = whyNotGvisor(thisHost());
  if (why !== undefined) return [{ name: "gvisor", on: "any engine", skippedBecause: why.reason }];
  const tools = prepareGvisorTools((line) => void process.stdout.write(`${line}\n`));
  const pinned = await plan("the pinned engine", tools, () => locateEngine(context, PINNED_SOURCES));
  const newest =
    findGo(context.searchPath) === undefined
      ? { name: "gvisor", on: "the newest engine", skippedBecause: "No Go here to build it." }
      : await plan("the newest engine", tools, () => buildNewestEngine(context));
  if ("skippedBecause" in pinned || "skippedBecause" in newest) return [pinned, newest];
  return [without(pinned, ON_NEWEST_ONLY), without(newest, ON_PINNED_ONLY)];
}

/** What needs a real engine or a real shell, and is about the server, runs on one of them. */
const ON_PINNED_ONLY = ["**/websocket/languages.gvisor.test.ts", "**/websocket/persistence.gvisor.test.ts"];
const ON_NEWEST_ONLY = [
  "**/backends/daytona/**",
  "**/http/portable.gvisor.test.ts",
  "**/test/resume/**",
  "**/test/crash/**",
  "packages/cli/**",
  "packages/client/**",
  "**/websocket/server-life.gvisor.test.ts",
  "**/websocket/handoff.gvisor.test.ts",
  "**/http/snapshots.gvisor.test.ts",
  "**/http/processes/**",
  "**/http/encryption.gvisor.test.ts",
  "**/http/integrity.gvisor.test.ts",
  "**/http/prove.gvisor.test.ts",
  "**/http/warm-pool.gvisor.test.ts",
  "**/gvisor/warm/**",
];

function without(suite: Suite, patterns: readonly string[]): Suite {
  return { ...suite, argv: [...suite.argv, ...patterns.map((pattern) => `--exclude=${pattern}`)] };
}

async function plan(what: string, tools: Promise<void>, locate: () => Promise<Engine>): Promise<Planned> {
  try {
    return await withSetupLock(context, async () => {
      const engine = await locate();
      const agent = await prepareAgent(context);
      const platform = await choosePlatform(context, engine, agent);
      await tools;
      const env = {
        SANDBOXER_TEST_RUNSC: engine.path,
        SANDBOXER_TEST_RUNSC_VERSION: engine.version,
        SANDBOXER_TEST_RUNSC_SHA256: engine.sha256,
        SANDBOXER_TEST_PLATFORM: platform,
        SANDBOXER_TEST_AGENT: agent.path,
        PATH: withGvisorTools(process.env["PATH"] ?? ""),
      };
      return inOwnNetwork(vitestSuite("gvisor", GVISOR_TIMEOUT_MS, `runsc ${engine.version}, ${platform}`, env));
    });
  } catch (thrown) {
    return { name: "gvisor", on: what, skippedBecause: (thrown as Error).message };
  }
}
