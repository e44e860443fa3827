import { join } from "node:path";
import { shippedFolder } from "../support/shipped-folder.ts";
import type { ReportStep } from "./step.ts";

export type Platform = "systrap" | "ptrace" | "kvm";

/** The inputs of set-up; it reads no environment. */
export interface SetupContext {
  /** Folder for engines, agents, test results and the set-up lock; everything in it can be created again. */
  readonly cacheDirectory: string;
  /** For unfinished downloads and builds; absent: the cache directory, which needs the set-up lock. */
  readonly scratchDirectory?: string | undefined;
  /** `PATH`: the search path of programs. */
  readonly searchPath: string;
  /** Path of the runsc to use. */
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
