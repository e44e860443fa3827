import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COMPILER_REMEDY, findAgent, findCompiler, type AgentBinary } from "../agent-binary.ts";
import type { Platform } from "../context.ts";
import { LOCAL_SOURCES, locateEngine } from "../engine/engine.ts";
import { localEngines } from "../engine/local-sources.ts";
import type { Engine } from "../engine/source.ts";
import { isOutdated, lacks } from "../engine/version.ts";
import { loadedSelfTest, readVerdict, type Verdict } from "../platform.ts";
import { thisHost, whyNotGvisor } from "../host.ts";
import type { Check, CheckContext, CheckResult } from "./check.ts";

const SET_UP = "sandboxer setup";
const SELF_TEST_TIMEOUT_MS = 20_000;

/** Agent, platform and network depend on the engine, so one check covers all of them. */
export const checkEngine: Check = async (context) => {
  const engine = await findEngine(context);
  const agent = await findAgent(context).catch(() => undefined);
  return [
    describeEngine(engine),
    ...(await describeOthers(context, engine)),
    describeAgent(agent, context),
    await checkPlatform(context, engine, agent),
    await checkNetwork(context, engine),
    await checkRoot(engine, agent),
  ];
};

type Found = Engine | { readonly missing: string };

async function findEngine(context: CheckContext): Promise<Found> {
  try {
    return await locateEngine({ ...context, report: () => {} }, LOCAL_SOURCES);
  } catch (thrown) {
    return { missing: (thrown as Error).message };
  }
}

function describeEngine(engine: Found): CheckResult {
  const base = { name: "runsc", needed: true };
  if ("missing" in engine) return { ...base, state: "missing", message: engine.missing, remedy: SET_UP };
  return { ...base, state: "found", version: engine.version, message: `${engine.path} (${engine.source})` };
}

/** Reports the other installed engines, and whether a newer one is known. */
async function describeOthers(context: CheckContext, engine: Found): Promise<CheckResult[]> {
  if ("missing" in engine) return [];
  const locals = await localEngines(context, context.signal);
  const others = locals.filter(({ version }) => version !== engine.version);
  const beside: CheckResult[] =
    others.length === 0
      ? []
      : [
          {
            name: "other engines",
            needed: false,
            state: "found",
            message: `${others.map(({ version, where }) => `${version} (${where})`).join(", ")}: for checkpoints that they wrote`,
          },
        ];
  if (!isOutdated(engine.version)) return beside;
  const message = lacks(engine.version) ?? `runsc ${engine.version} is older than the newest tested one`;
  return [...beside, { name: "newest engine", needed: false, state: "missing", message, remedy: `${SET_UP} --newest` }];
}

function describeAgent(agent: AgentBinary | undefined, context: CheckContext): CheckResult {
  const base = { name: "agent", needed: true };
  if (agent !== undefined) return { ...base, state: "found", message: agent.path };
  const tools = findCompiler(context.searchPath);
  if (tools !== undefined)
    return { ...base, state: "found", message: `compiled at the first start, with ${tools.compiler}` };
  return {
    ...base,
    state: "missing",
    message: "not compiled, and a C compiler and make are not installed",
    remedy: COMPILER_REMEDY,
  };
}

async function checkPlatform(
  context: CheckContext,
  engine: Found,
  agent: AgentBinary | undefined,
): Promise<CheckResult> {
  const base = { name: "platform", needed: true };
  if ("missing" in engine || agent === undefined || whyNotGvisor(thisHost()) !== undefined) {
    return {
      ...base,
      state: "unknown",
      message: "cannot be tested without root, runsc and the agent",
      remedy: SET_UP,
    };
  }
  const reasons: string[] = [];
  const platforms: readonly Platform[] = context.platform === "auto" ? ["systrap", "ptrace"] : [context.platform];
  for (const platform of platforms) {
    const verdict =
      (await readVerdict({ cacheDirectory: context.cacheDirectory, engine, agent, platform })) ??
      (await test(engine, agent, platform));
    if (verdict.ok) {
      const message = `${platform}: run, checkpoint and restore work; sandboxes are driven by ${verdict.control}`;
      return { ...base, state: "found", version: platform, message };
    }
    reasons.push(`${platform}: ${verdict.reason}`);
  }
  return {
    ...base,
    state: "missing",
    message: reasons.join("; "),
    remedy: "In a container, start it with --privileged.",
  };
}

async function checkNetwork(context: CheckContext, engine: Found): Promise<CheckResult> {
  const base = { name: "network for sandboxes", needed: false };
  if ("missing" in engine || whyNotGvisor(thisHost()) !== undefined) {
    return { ...base, state: "unknown", message: "cannot be checked without root and runsc", remedy: SET_UP };
  }
  const { probeNetwork } = await import("../../backends/gvisor/network/network-support.ts");
  const support = await probeNetwork(engine.version, context.searchPath);
  if (support.ok) return { ...base, state: "found", message: "available with --network-mode auto or namespace" };
  return { ...base, state: "missing", message: support.reason, remedy: support.remedy };
}

async function checkRoot(engine: Found, agent: AgentBinary | undefined): Promise<CheckResult> {
  const base = { name: "root inside", needed: false };
  if ("missing" in engine || agent === undefined || whyNotGvisor(thisHost()) !== undefined) {
    return {
      ...base,
      state: "unknown",
      message: "cannot be checked without root, runsc and the agent",
      remedy: SET_UP,
    };
  }
  const { canSeal, NO_SEAL } = await import("../../backends/gvisor/seal.ts");
  const { readTraits } = await import("../../backends/gvisor/engine.ts");
  if (!(await canSeal(agent.path)))
    return { ...base, state: "missing", message: NO_SEAL, remedy: "Use a newer kernel." };
  const works = "programs can run as root (--user root), unless --root-inside is off";
  const { hasSetUserId } = await readTraits(engine.path);
  return { ...base, state: "found", message: hasSetUserId ? works : `${works}; sudo needs the newest runsc` };
}

async function test(engine: Engine, agent: AgentBinary, platform: Platform): Promise<Verdict> {
  const directory = await mkdtemp(join(tmpdir(), "sandboxer-doctor-"));
  try {
    const timeoutMs = SELF_TEST_TIMEOUT_MS;
    const { path: runscPath, version } = engine;
    return await loadedSelfTest({ runscPath, version, platform, agentPath: agent.path, directory, timeoutMs });
  } catch (thrown) {
    return { ok: false, reason: (thrown as Error).message };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
