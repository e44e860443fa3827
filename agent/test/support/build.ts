import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const agentFolder = fileURLToPath(new URL("../..", import.meta.url));

// Every test file runs against the sanitized build. Workers start at the same time, so the first one builds and the others wait.
mkdirSync(`${agentFolder}build`, { recursive: true });
execFileSync("flock", ["build/.lock", "make", "-s", "asan"], { cwd: agentFolder, stdio: "inherit" });

export const agentBinary = `${agentFolder}build/sandboxer-agent-asan`;

/** As in sandboxes: sanitizers use memory of their own. */
export function buildPlainAgent(): string {
  execFileSync("flock", ["build/.lock", "make", "-s", "all"], { cwd: agentFolder, stdio: "inherit" });
  return `${agentFolder}build/sandboxer-agent`;
}
