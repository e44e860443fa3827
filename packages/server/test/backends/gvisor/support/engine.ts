import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import type { Platform } from "../../../../src/backends/gvisor/runsc.ts";

export interface TestEngine {
  readonly path: string;
  readonly version: string;
  readonly sha256: string;
  readonly platform: Platform;
  readonly agentPath: string;
}

const BUILT_AGENT = new URL("../../../../../../agent/build/sandboxer-agent", import.meta.url).pathname;

/** The engine of this run (see scripts/testing/engines.ts), or why there is none. */
export function testEngine(): TestEngine | { readonly missing: string } {
  const path = process.env["SANDBOXER_TEST_RUNSC"];
  if (path === undefined) return { missing: "SANDBOXER_TEST_RUNSC names no runsc" };
  if (process.getuid?.() !== 0) return { missing: "gVisor needs root" };
  const agentPath = process.env["SANDBOXER_TEST_AGENT"] ?? BUILT_AGENT;
  if (!existsSync(agentPath)) return { missing: `there is no agent at ${agentPath}: make -C agent` };
  const version =
    process.env["SANDBOXER_TEST_RUNSC_VERSION"] ??
    /version (\S+)/.exec(execFileSync(path, ["--version"], { encoding: "utf8" }))?.[1] ??
    "unknown";
  const sha256 = process.env["SANDBOXER_TEST_RUNSC_SHA256"] ?? "";
  const platform = (process.env["SANDBOXER_TEST_PLATFORM"] ?? "systrap") as Platform;
  return { path, version, sha256, platform, agentPath };
}
