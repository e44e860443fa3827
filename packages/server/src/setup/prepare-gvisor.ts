import { SandboxerError } from "@sandboxer/protocol";
import type { ControlWay } from "../backends/gvisor/engine.ts";
import { acquireFileLock } from "../support/file-lock.ts";
import { prepareAgent, type AgentBinary } from "./agent-binary.ts";
import { setupLockPath, type Platform, type SetupContext } from "./context.ts";
import { locateEngine } from "./engine/engine.ts";
import { localEngines } from "./engine/local-sources.ts";
import type { Engine } from "./engine/source.ts";
import { requireGvisorHost, thisHost } from "./host.ts";
import { choosePlatform } from "./platform.ts";
import { removeStaleScratch } from "./scratch.ts";

export interface GvisorSetup {
  readonly engine: Engine;
  readonly agentPath: string;
  readonly agentSha256: string;
  readonly platform: Platform;
  readonly control: ControlWay;
}

/** A first start may be fetching an engine; nothing else takes nearly as long. */
const OTHER_START_TIMEOUT_MS = 15 * 60_000;

/** Finds or builds everything that the gvisor backend needs. Existing parts cost no time and no network. */
export async function prepareGvisor(context: SetupContext): Promise<GvisorSetup> {
  requireGvisorHost(thisHost());
  return withSetupLock(context, async () => {
    const engine = await locateEngine(context);
    const agent = await prepareAgent(context);
    const tested = await testInTurn(context, engine, agent);
    return { ...tested, agentPath: agent.path, agentSha256: agent.sha256 };
  });
}

/** The preferred engine, or the next of this machine that works here. */
async function testInTurn(
  context: SetupContext,
  preferred: Engine,
  agent: AgentBinary,
): Promise<Pick<GvisorSetup, "engine" | "platform" | "control">> {
  try {
    return { engine: preferred, ...(await choosePlatform(context, preferred, agent)) };
  } catch (error) {
    if (context.runscPath !== undefined) throw error;
    const signal = context.signal ?? new AbortController().signal;
    for (const local of await localEngines(context, signal)) {
      const engine = local.version === preferred.version ? undefined : await local.read(signal);
      const choice = engine && (await choosePlatform(context, engine, agent).catch(() => undefined));
      if (engine !== undefined && choice !== undefined) return { engine, ...choice };
    }
    throw error;
  }
}

/** One set-up at a time for each cache directory. A second one waits, saying so, and then finds everything done. */
export async function withSetupLock<T>(context: SetupContext, work: () => Promise<T>): Promise<T> {
  const startMs = performance.now();
  const tell = (state: "start" | "done" | "failed", message: string): void =>
    context.report({ name: "set-up lock", state, message, elapsedMs: Math.round(performance.now() - startMs) });
  let waited = false;
  const lock = await acquireFileLock(setupLockPath(context.cacheDirectory), {
    waitMs: OTHER_START_TIMEOUT_MS,
    ...(context.signal === undefined ? {} : { signal: context.signal }),
    onWait: () => {
      waited = true;
      tell("start", "Another process is running the set-up; waiting for it");
    },
  });
  if (lock === undefined) {
    const message = `Another process has held ${setupLockPath(context.cacheDirectory)} for ${OTHER_START_TIMEOUT_MS / 60_000} minutes.`;
    tell("failed", message);
    throw new SandboxerError("timeout", message, { hint: "End the other process, then start again." });
  }
  if (waited) tell("done", "The other process has finished the set-up");
  try {
    await removeStaleScratch(context.cacheDirectory);
    return await work();
  } finally {
    await lock.release();
  }
}
