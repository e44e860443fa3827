import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { release } from "node:os";
import { dirname, join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { ControlWay } from "../backends/gvisor/engine.ts";
import type { AgentBinary } from "./agent-binary.ts";
import type { Platform, SetupContext } from "./context.ts";
import { inScratchDirectory } from "./scratch.ts";
import type { Engine } from "./engine/source.ts";
import { runStep } from "./step.ts";
import { jsonOf } from "../support/json.ts";

export type Verdict =
  | { readonly ok: true; readonly elapsedMs: number; readonly control: ControlWay }
  | { readonly ok: false; readonly reason: string };

/** What works on this machine. */
export interface Choice {
  readonly platform: Platform;
  readonly control: ControlWay;
}

export type SelfTest = (options: {
  runscPath: string;
  version: string;
  platform: Platform;
  agentPath: string;
  directory: string;
  timeoutMs: number;
}) => Promise<Verdict>;

/** The subject of a test result. */
interface Trial {
  readonly cacheDirectory: string;
  readonly engine: Engine;
  readonly agent: AgentBinary;
  readonly platform: Platform;
}

/** systrap is faster; ptrace works in more places. kvm hangs on some machines, so it is only used when asked for. */
const AUTOMATIC: readonly Platform[] = ["systrap", "ptrace"];
const SELF_TEST_TIMEOUT_MS = 20_000;

/**
 * Chooses the platform by testing: run, pause, checkpoint, restore, ping. Results are remembered for the same engine,
 * agent and kernel.
 */
export async function choosePlatform(
  context: SetupContext,
  engine: Engine,
  agent: AgentBinary,
  selfTest: SelfTest = loadedSelfTest,
): Promise<Choice> {
  const candidates = context.platform === "auto" ? AUTOMATIC : [context.platform];
  const reasons: string[] = [];
  const failed: Trial[] = [];
  for (const platform of candidates) {
    const trial = { cacheDirectory: context.cacheDirectory, engine, agent, platform };
    const verdict = await judge(context, trial, selfTest);
    if (verdict.ok) {
      // A failure is remembered only beside a success: if nothing works, the next start tests again.
      for (const other of failed) await remember(other, { ok: false, reason: reasons.join(" ") });
      return { platform, control: verdict.control };
    }
    failed.push(trial);
    reasons.push(`${platform}: ${verdict.reason}`);
  }
  throw new SandboxerError("backend_unavailable", `gVisor does not work on this machine. ${reasons.join(" ")}`, {
    hint: "If this is a container, start it with --privileged. To try the protocol without sandboxes, start with --backend fake.",
  });
}

/** Undefined if this combination was never tested. */
export async function readVerdict(trial: Trial): Promise<Verdict | undefined> {
  return jsonOf(await readFile(verdictPath(trial), "utf8").catch(() => "")) as Verdict | undefined;
}

async function judge(context: SetupContext, trial: Trial, selfTest: SelfTest): Promise<Verdict> {
  const { platform } = trial;
  const known = await readVerdict(trial);
  // A platform that was requested by name is tested again after a failure.
  if (known?.ok === true || (known !== undefined && context.platform === "auto")) return known;
  let verdict: Verdict = { ok: false, reason: "not tested" };
  await runStep(context.report, {
    name: `platform: ${platform}`,
    message: `Testing ${platform}: run, checkpoint, restore`,
    timeoutMs: 3 * SELF_TEST_TIMEOUT_MS,
    signal: context.signal,
    work: async () => {
      verdict = await testTwice(trial, selfTest);
      if (!verdict.ok) return { skipped: `${platform} does not work here: ${verdict.reason}` };
      await remember(trial, verdict);
      return { value: undefined, message: `${platform} works, driven by ${verdict.control}` };
    },
  });
  return verdict;
}

/** One checkpoint in a thousand fails without a lasting reason, and changing the platform later would lose images. */
async function testTwice({ cacheDirectory, engine, agent, platform }: Trial, selfTest: SelfTest): Promise<Verdict> {
  const once = (): Promise<Verdict> =>
    inScratchDirectory(cacheDirectory, (directory) =>
      selfTest({
        runscPath: engine.path,
        version: engine.version,
        platform,
        agentPath: agent.path,
        directory,
        timeoutMs: SELF_TEST_TIMEOUT_MS,
      }),
    );
  const first = await once();
  return first.ok ? first : once();
}

export const loadedSelfTest: SelfTest = async (options) => {
  const { selfTest } = await import("../backends/gvisor/self-test.ts");
  return selfTest(options);
};

async function remember(trial: Trial, verdict: Verdict): Promise<void> {
  const path = verdictPath(trial);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(`${path}.new`, `${JSON.stringify(verdict)}\n`);
  await rename(`${path}.new`, path);
}

function verdictPath({ cacheDirectory, engine, agent, platform }: Trial): string {
  const key = createHash("sha256").update([engine.sha256, agent.sha256, release(), platform].join("\0")).digest("hex");
  return join(cacheDirectory, "verdicts", `${key}.json`);
}
