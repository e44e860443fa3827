import { existsSync } from "node:fs";
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
import { cachedEnginePath } from "../../packages/server/src/setup/engine/cache.ts";
import { NEWEST_ENGINE_VERSION } from "../../packages/server/src/setup/engine/version.ts";
import { prepareGvisorTools, withGvisorTools } from "../../test/kit/services/gvisor-tools.ts";
import { withProgress } from "../../test/kit/progress.ts";
import { inOwnNetwork } from "./own-network.ts";
import { vitestSuite, type Suite } from "./suite.ts";

const GVISOR_TIMEOUT_MS = 40 * 60_000;

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const config = parseConfig({ flags: {}, env: process.env, homeDirectory: homedir() });
export const context: SetupContext = {
  cacheDirectory: config.cacheDirectory,
  searchPath: config.searchPath,
  platform: "auto",
  report: (step) => {
    if (step.state !== "start") say(`set-up: ${step.state}: ${step.message}`);
  },
};

export interface SkippedSuite {
  readonly name: string;
  readonly on: string;
  readonly skippedBecause: string;
}

export type Planned = Suite | SkippedSuite;

/**
 * The gVisor suite once for each engine: the pinned one of 2024, and the newest where Go can build it. Tests get their
 * engine in `SANDBOXER_TEST_RUNSC`, `…_RUNSC_VERSION`, `…_RUNSC_SHA256`, `…_PLATFORM` and `…_AGENT`; other
 * programs that they need are in the `PATH`.
 */
export async function planGvisorSuites(which: "usual" | "all" = "usual"): Promise<Planned[]> {
  const why = whyNotGvisor(thisHost());
  if (why !== undefined) return [{ name: "gvisor", on: "any engine", skippedBecause: why.reason }];
  const tools = prepareGvisorTools(say);
  const pinned = await plan("the pinned engine", tools, () => locateEngine(context, PINNED_SOURCES));
  const newest =
    findGo(context.searchPath) === undefined
      ? { name: "gvisor", on: "the newest engine", skippedBecause: "There is no Go to build it with." }
      : await plan("the newest engine", tools, buildNewest, "ahead");
  if (which === "all") return [pinned, newest];
  const areBoth = !("skippedBecause" in pinned || "skippedBecause" in newest);
  return [
    without(pinned, areBoth ? ["newest", "long"] : ["long"]),
    without(newest, areBoth ? ["pinned", "long"] : ["long"]),
  ];
}

/** The flags of a server for the newest engine that this machine has; undefined, with the reason printed, where there is none. */
export async function newestEngineFlags(): Promise<string[] | undefined> {
  const suites = await planGvisorSuites();
  const found = suites.findLast((suite) => "env" in suite);
  const env = found !== undefined && "env" in found ? found.env : undefined;
  const { SANDBOXER_TEST_RUNSC: runsc, SANDBOXER_TEST_PLATFORM: platform = "auto" } = env ?? {};
  if (runsc !== undefined) return ["--runsc", runsc, "--platform", platform];
  for (const suite of suites) if ("skippedBecause" in suite) say(`gvisor: SKIPPED: ${suite.skippedBecause}`);
  return undefined;
}

/** Tests that need a real engine but are about the server run on one engine. Those that take long run in `npm run test:long`. */
function without(planned: Planned, kinds: readonly ("pinned" | "newest" | "long")[]): Planned {
  if ("skippedBecause" in planned) return planned;
  return { ...planned, argv: [...planned.argv, ...kinds.map((kind) => `--exclude=**/*.${kind}.gvisor.test.ts`)] };
}

function buildNewest(): Promise<Engine> {
  const path = cachedEnginePath(context.cacheDirectory, NEWEST_ENGINE_VERSION);
  if (existsSync(path)) return buildNewestEngine(context);
  say(
    `set-up: the suites gvisor, docker, console and chaos need runsc ${NEWEST_ENGINE_VERSION}, which is kept in ${path}:`,
  );
  say("set-up:   built from its source with Go, in 3 to 8 minutes: only Go's module proxy has this version");
  return withProgress(say, "building runsc", () => buildNewestEngine(context));
}

/** `ahead`: without the lock, which starting servers wait for; a build takes minutes, and has a lock of its own. */
async function plan(
  what: string,
  tools: Promise<void>,
  locate: () => Promise<Engine>,
  when?: "ahead",
): Promise<Planned> {
  try {
    const ahead = when === "ahead" ? await locate() : undefined;
    return await withSetupLock(context, async () => {
      const engine = ahead ?? (await locate());
      const agent = await prepareAgent(context);
      const { platform } = await choosePlatform(context, engine, agent);
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
