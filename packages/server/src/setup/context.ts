import { join } from "node:path";
import { shippedFolder } from "../support/shipped-folder.ts";
import type { ReportStep } from "./step.ts";

export type Platform = "systrap" | "ptrace" | "kvm";

/** What set-up is told; it reads no environment. */
export interface SetupContext {
  /** Engines, agents, verdicts and the set-up lock live here; all of it can be made again. */
  readonly cacheDirectory: string;
  /** `PATH`: where programs are looked for. */
  readonly searchPath: string;
  /** Use this runsc and no other. */
  readonly runscPath?: string | undefined;
  readonly platform: "auto" | Platform;
  /** Where the agent's sources and Makefile are. */
  readonly agentDirectory?: string | undefined;
  readonly report: ReportStep;
  readonly signal?: AbortSignal | undefined;
}

/** The agent's sources in this repository. */
export const AGENT_DIRECTORY = shippedFolder("agent");

export function setupLockPath(cacheDirectory: string): string {
  return join(cacheDirectory, "setup.lock");
}
