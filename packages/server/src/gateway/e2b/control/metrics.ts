import { availableParallelism, freemem } from "node:os";
import type { SandboxUsage } from "@sandboxer/protocol";

/** The points of a sandbox's resource usage, as E2B's clients read them. `start` and `end` in seconds since 1970. */
export function metricsOf(
  { used, limits }: SandboxUsage,
  { start = 0, end = Infinity }: { start?: number | undefined; end?: number | undefined },
) {
  const cpuCount = Math.ceil(limits.cpus ?? availableParallelism());
  return used.time.flatMap((seconds, index) => {
    if (seconds < start || seconds > end) return [];
    const [memUsed = 0, diskUsed = 0, cpus] = [used.memory_bytes[index], used.disk_bytes[index], used.cpus[index]];
    const point = {
      timestamp: new Date(seconds * 1000).toISOString(),
      timestampUnix: Math.floor(seconds),
      cpuCount,
      cpuUsedPct: Math.round(((cpus ?? 0) / cpuCount) * 10_000) / 100,
      memUsed,
      memTotal: limits.memory_bytes ?? memUsed + freemem(),
      // Not known apart from the rest.
      memCache: 0,
      diskUsed,
      diskTotal: limits.disk_bytes ?? diskUsed,
    };
    return [point];
  });
}
