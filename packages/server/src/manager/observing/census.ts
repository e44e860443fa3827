import type { ResponseOf, Routes, SandboxState } from "@sandboxer/protocol";
import type { ObservingContext } from "../room-contexts.ts";
import { warmPoolRecord } from "../lifecycle/warm-pool.ts";

type ServerSummary = Omit<ResponseOf<Routes["serverInfo"]>, "version" | "store" | "scope" | "has_key">;

export function summaryOf(context: ObservingContext): ServerSummary {
  const { durable, defaultBackend, maxSandboxes } = context.options;
  return {
    instance_id: durable.ownership.instanceId,
    default_backend: defaultBackend,
    draining: context.draining,
    sandboxes: context.sandboxes.size,
    dozing: countDozing(context),
    max_sandboxes: maxSandboxes,
    warm_pool: warmPoolRecord(context) ?? null,
    engines: enginesOf(context),
  };
}

function enginesOf({ options }: ObservingContext): ServerSummary["engines"] {
  const engines = [...options.backends.values()].flatMap((backend) => backend.engines ?? []);
  return engines.map(({ platform, control, message, ...engine }) => ({
    ...engine,
    platform: platform ?? null,
    control: control ?? null,
    message: message ?? null,
  }));
}

export function countStates({ sandboxes }: ObservingContext): Readonly<Partial<Record<SandboxState, number>>> {
  const counts: Partial<Record<SandboxState, number>> = {};
  for (const { state } of sandboxes.values()) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

/** Sandboxes whose max_loss is not met. */
export function countAtRisk({ sandboxes }: ObservingContext): number {
  return [...sandboxes.values()].filter(({ atRisk }) => atRisk !== undefined).length;
}

/** Running sandboxes that use no CPU. */
export function countDozing({ sandboxes }: ObservingContext): number {
  return [...sandboxes.values()].filter((sandbox) => sandbox.state === "running" && sandbox.handle.dozing === true)
    .length;
}

type BackendRecord = ResponseOf<Routes["listBackends"]>["items"][number];

/** The backends, their capabilities and whether they work. */
export async function listBackends({ options }: ObservingContext): Promise<BackendRecord[]> {
  return Promise.all(
    [...options.backends.values()].map(async (backend) => {
      const { ok, summary, remedy } = await backend.probe();
      return {
        name: backend.name,
        default: backend.name === options.defaultBackend,
        ok,
        summary,
        remedy: remedy ?? null,
        capabilities: { ...backend.capabilities },
      };
    }),
  );
}
