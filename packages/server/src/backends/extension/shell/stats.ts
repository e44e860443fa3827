import type { SandboxStats } from "../../backend.ts";
import { runShell, type StartShell } from "./run-shell.ts";

/** Memory in bytes, processor time in microseconds: from cgroup v2, else v1, else nothing. */
const SCRIPT = `cd /sys/fs/cgroup || exit 0
if [ -r memory.current ]; then
  read -r memory < memory.current; read -r name micros < cpu.stat
else
  read -r memory < memory/memory.usage_in_bytes; read -r nanos < cpuacct/cpuacct.usage; micros=\${nanos%???}
fi 2>/dev/null
printf '%s %s' "\${memory:-0}" "\${micros:-0}"
`;

/** What the sandbox writes is not counted. */
export async function readStats(start: StartShell): Promise<SandboxStats> {
  const { stdout } = await runShell(start, SCRIPT, []);
  const match = /^(\d+) (\d+)$/.exec(stdout.toString("latin1"));
  return { memoryBytes: Number(match?.[1] ?? 0), diskBytes: 0, cpuMs: Math.round(Number(match?.[2] ?? 0) / 1000) };
}
