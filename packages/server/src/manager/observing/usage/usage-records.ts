import type { QueryOf, Routes, SandboxUsage, UsageColumns } from "@sandboxer/protocol";
import type { Resources } from "../../../backends/backend.ts";
import type { ObservingContext } from "../../room-contexts.ts";
import { isFrozen } from "../../ownership/freeze.ts";
import type { LiveSandbox } from "../../live-sandbox.ts";
import { runningSandbox } from "../../running.ts";
import { UsageSampler, type UsageSource } from "./usage-sampler.ts";
import { cpusBetween, type UsagePoint } from "./usage-series.ts";

type UsageFilter = QueryOf<Routes["listUsage"]>;

/** The current and recent resource usage of this server's sandboxes. */
export class Usage {
  readonly #context: ObservingContext;
  readonly #sampler: UsageSampler;

  constructor(context: ObservingContext) {
    this.#context = context;
    this.#sampler = new UsageSampler({
      clock: context.options.clock,
      sources: () => sourcesOf(context),
      isHere: (sandboxId) => context.sandboxes.has(sandboxId),
    });
  }

  stop(): void {
    this.#sampler.stop();
  }

  /** Every sandbox that is here and was sampled since. */
  list({ points, since }: UsageFilter): { sandbox_id: string; used: UsageColumns }[] {
    const listed: { sandbox_id: string; used: UsageColumns }[] = [];
    for (const [sandbox_id, { series }] of this.#sampler.all()) {
      if (!this.#context.sandboxes.has(sandbox_id)) continue;
      // One more point, for the rate of the first.
      const used = columnsOf(series.last(points + 1), { points, since });
      if (used.time.length > 0) listed.push({ sandbox_id, used });
    }
    return listed;
  }

  async now(sandboxId: string): Promise<{ memory_bytes: number; disk_bytes: number; cpu_ms: number }> {
    const sandbox = await runningSandbox(this.#context, sandboxId);
    const { memoryBytes, diskBytes, cpuMs } = await sandbox.handle.stats();
    return { memory_bytes: memoryBytes, disk_bytes: diskBytes, cpu_ms: cpuMs };
  }

  /** Also for a sandbox that is being saved or is frozen. */
  async of(sandboxId: string, since: number | undefined): Promise<SandboxUsage> {
    const sandbox = this.#context.sandboxes.get(sandboxId) ?? (await runningSandbox(this.#context, sandboxId));
    const { points } = this.#sampler.of(sandboxId);
    const { cpus, memoryBytes, diskBytes } = limitsOf(this.#context, sandbox);
    return {
      sandbox_id: sandboxId,
      used: columnsOf(points, { points: points.length, since }),
      limits: { cpus: cpus ?? null, memory_bytes: memoryBytes ?? null, disk_bytes: diskBytes ?? null },
    };
  }
}

function sourcesOf(context: ObservingContext): UsageSource[] {
  const sources: UsageSource[] = [];
  for (const sandbox of context.sandboxes.values()) {
    if (sandbox.state !== "running" || isFrozen(context, sandbox)) continue;
    // A sandbox that ends with this server is its child process; others are behind a network interface.
    const near = !context.backend(sandbox.facts.backend).capabilities.outlivesServer;
    sources.push({ sandboxId: sandbox.id, near, stats: () => sandbox.handle.stats() });
  }
  return sources;
}

function limitsOf(context: ObservingContext, { facts }: LiveSandbox): Resources {
  return { ...context.backend(facts.backend).defaultResources, ...facts.spec.resources };
}

function columnsOf(points: readonly UsagePoint[], { points: count, since = -Infinity }: UsageFilter): UsageColumns {
  const columns: UsageColumns = { time: [], memory_bytes: [], disk_bytes: [], cpus: [] };
  const first = Math.max(0, points.length - count);
  for (const [index, point] of points.entries()) {
    const time = Math.round(point.wallMs) / 1000;
    if (index < first || time <= since) continue;
    const cpus = cpusBetween(points[index - 1], point);
    columns.time.push(time);
    columns.memory_bytes.push(Math.round(point.memoryBytes));
    columns.disk_bytes.push(Math.round(point.diskBytes));
    columns.cpus.push(cpus === undefined ? null : Math.round(cpus * 1000) / 1000);
  }
  return columns;
}
