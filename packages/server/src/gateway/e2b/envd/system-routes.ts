import type { FastifyInstance, FastifyRequest } from "fastify";
import type { E2bServices } from "../e2b-services.ts";
import type { EnvdCalls } from "./envd-calls.ts";

/** Whether a sandbox runs, what it uses, and its variables. */
export function registerSystemRoutes(app: FastifyInstance, services: E2bServices, calls: EnvdCalls): void {
  // Without a token, as at E2B.
  app.get("/health", async ({ e2bTarget }, reply) => {
    await services.running(e2bTarget?.sandboxId ?? "");
    return reply.code(204).send();
  });

  const metricsOf = async (request: FastifyRequest): Promise<Record<string, number>> => {
    const { id } = await calls.sandboxOf(request);
    const { usage } = services.manager;
    const [now, { used, limits }] = await Promise.all([usage.now(id), usage.of(id, undefined)]);
    const cpus = limits.cpus ?? 1;
    return {
      ts: Math.floor(Date.now() / 1000),
      cpu_count: Math.max(1, Math.ceil(cpus)),
      cpu_used_pct: Math.round(((used.cpus.at(-1) ?? 0) / cpus) * 10_000) / 100,
      mem_total: limits.memory_bytes ?? 0,
      mem_used: now.memory_bytes,
      mem_cache: 0,
      disk_total: limits.disk_bytes ?? 0,
      disk_used: now.disk_bytes,
    };
  };
  const environmentOf = async (request: FastifyRequest): Promise<Readonly<Record<string, string>>> =>
    services.manager.processes.environment(await calls.sandboxOf(request));

  app.get("/metrics", (request) => metricsOf(request));
  app.get("/envs", (request) => environmentOf(request));
}
