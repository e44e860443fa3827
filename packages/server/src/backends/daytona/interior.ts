import { SandboxerError } from "@sandboxer/protocol";
import { WORKING_FOLDER } from "../agent/user-space.ts";
import type { ProcessTableEntry, SandboxFiles } from "../backend.ts";
import { readProcessTable } from "../extension/shell/process-table.ts";
import { ShellFiles } from "../extension/shell/shell-files.ts";
import { BRIDGE_MARK, BRIDGE_TOOLS, HELPER_MARK } from "./exec/bridge-script.ts";
import { RUN_MARK, runScript, shellOf } from "./exec/shell-script.ts";
import { EXEC_VARIABLE } from "./exec/start-bridge.ts";
import type { Toolbox } from "./toolbox/toolbox.ts";

const FILE_TOOLS = ["chmod", "ln", "mktemp", "mv", "readlink", "rm", "rmdir", "stat", "touch"] as const;

/**
 * Finds the tools inside and the working folder: the common one of all backends, or the daemon's own if that cannot be
 * created. The daemon feeds the script to a shell's stdin, which sudo must not read.
 */
const LOOK = `w=${WORKING_FOLDER}
[ -d "$w" ] && [ -w "$w" ] || mkdir -p "$w" 2>/dev/null || sudo -n install -d -o "$(id -u)" -g "$(id -g)" "$w" </dev/null 2>/dev/null || w=
for t in ${[...BRIDGE_TOOLS, ...FILE_TOOLS].join(" ")}; do command -v "$t" >/dev/null 2>&1 || echo "missing $t"; done
echo "folder $w"
`;

/**
 * Stops or continues processes that were started through this backend, and their children. Twice, for processes that
 * were just forking. Each environment goes through `tr`: busybox's `grep` stops at the first NUL byte.
 */
export const SIGNAL_ALL = `for round in 1 2; do
  for folder in /proc/[0-9]*; do
    if tr '\\0' '\\n' <"$folder/environ" | grep -q '^${EXEC_VARIABLE}='; then kill -s "$1" "\${folder#/proc/}"; fi
  done
done 2>/dev/null
exit 0
`;

export interface Interior {
  readonly workingFolder: string;
  /** Whether programs can be started through the bridge. */
  readonly streaming: boolean;
  /** File access that supports links; undefined if the image lacks the tools. */
  readonly shellFiles: SandboxFiles | undefined;
}

/** Resolves when the daemon answers, with what is possible inside. */
export async function lookInside(toolbox: Toolbox, signal?: AbortSignal): Promise<Interior> {
  const { dir } = await toolbox.workFolder(signal);
  const { result } = await toolbox.execute({ command: LOOK }, { signal, timeoutMs: 60_000 });
  const folder = /^folder (.*)$/m.exec(result)?.[1];
  const missing = new Set([...result.matchAll(/^missing (\S+)$/gm)].map((match) => match[1] ?? ""));
  const has = (tools: readonly string[]): boolean => folder !== undefined && tools.every((tool) => !missing.has(tool));
  const scripts = has(["base64", "mktemp", "rm"]);
  return {
    workingFolder: folder === undefined || folder === "" ? dir : folder,
    streaming: scripts && has(BRIDGE_TOOLS),
    shellFiles: scripts && has(FILE_TOOLS) ? new ShellFiles(shellOf(toolbox)) : undefined,
  };
}

/** Without this backend's own processes. */
export async function processTableOf(toolbox: Toolbox): Promise<readonly ProcessTableEntry[]> {
  const rows = await readProcessTable(shellOf(toolbox));
  // The bridge's own text names its helpers; its program is its child.
  const isHelper = ({ command }: ProcessTableEntry): boolean =>
    command.includes(HELPER_MARK) && !command.includes(BRIDGE_MARK);
  const helpers = new Set(rows.filter(isHelper).map(({ pid }) => pid));
  const own = (row: ProcessTableEntry): boolean =>
    [RUN_MARK, BRIDGE_MARK, HELPER_MARK].some((mark) => row.command.includes(mark)) || helpers.has(row.parentPid);
  return rows.filter((row) => !own(row));
}

export async function signalEverything(toolbox: Toolbox, signal: "STOP" | "CONT"): Promise<void> {
  const { code, stderr } = await runScript(toolbox, SIGNAL_ALL, [signal]);
  if (code !== 0) {
    throw new SandboxerError(
      "sandbox_failed",
      `Processes in the sandbox cannot be signalled: ${stderr.toString("utf8").trim()}`,
    );
  }
}
