import { SandboxerError } from "@sandboxer/protocol";
import type { Resources, SandboxBackend, SandboxSpec } from "../backends/backend.ts";

export type MaxResources = Omit<Resources, "fileBytes">;

/** The limits of sandboxes on this server. */
export interface ResourceLimits {
  /** The maximum for one sandbox, on every backend. */
  readonly everywhere: MaxResources;
  /** The maximum for one sandbox on a backend of this machine. */
  readonly here: MaxResources;
  /** The total memory that sandboxes on backends of this machine may request. */
  readonly totalMemoryBytes: number;
  /** The total CPUs that they may request; absent: no limit. */
  readonly totalCpus?: number | undefined;
}

export interface Asking {
  readonly backend: Pick<SandboxBackend, "capabilities">;
  readonly spec: Pick<SandboxSpec, "resources">;
}

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
const KINDS: readonly { readonly name: keyof MaxResources; readonly say: (amount: number) => string }[] = [
  { name: "memoryBytes", say: (bytes) => `${sayBytes(bytes)} of memory` },
  { name: "cpus", say: (cpus) => `${cpus} CPUs` },
  { name: "processes", say: (processes) => `${processes} processes` },
  { name: "diskBytes", say: (bytes) => `${sayBytes(bytes)} of disk` },
];

/** Refuses a sandbox that requests more than one sandbox may have. */
export function checkMaximum(limits: ResourceLimits, { backend, spec }: Asking): void {
  const maximum = backend.capabilities.selfHosted ? limits.here : limits.everywhere;
  const exceeded = KINDS.filter(({ name }) => (spec.resources[name] ?? 0) > (maximum[name] ?? Infinity));
  if (exceeded.length === 0) return;
  const asked = exceeded.map(({ name, say }) => `${say(spec.resources[name]!)} (at most ${say(maximum[name]!)})`);
  throw new SandboxerError(
    "not_supported",
    `The sandbox requests more than this server allows for one sandbox: ${asked.join(", ")}.`,
    {
      hint: "Request less, or raise --max-resources of the server.",
      details: {
        exceeded: exceeded.map(({ name }) => ({ name, asked: spec.resources[name], maximum: maximum[name] })),
      },
    },
  );
}

/** The part of the totals that no sandbox has requested; null: there is no limit. */
export function freeResources(
  limits: ResourceLimits,
  present: readonly Asking[],
): { readonly memory_bytes: number; readonly cpus: number | null } {
  const { totalMemoryBytes, totalCpus } = limits;
  return {
    memory_bytes: Math.max(0, totalMemoryBytes - sum(present, promisedBytes)),
    cpus: totalCpus === undefined ? null : Math.max(0, totalCpus - sum(present, promisedCpus)),
  };
}

/**
 * Refuses a sandbox whose memory or CPUs are no longer free. Only what is requested is reserved: sandboxes that request
 * nothing share the rest, under the default limit of each.
 */
export function checkFree(limits: ResourceLimits, asking: Asking, others: readonly Asking[]): void {
  const free = freeResources(limits, others);
  const cpus = promisedCpus(asking);
  if (free.cpus !== null && cpus > free.cpus) throw noCpus(cpus, free.cpus, limits.totalCpus ?? 0);
  const wanted = promisedBytes(asking);
  if (wanted <= free.memory_bytes) return;
  const promised = sum(others, promisedBytes);
  throw new SandboxerError(
    "limit_reached",
    `The sandbox requests ${sayBytes(wanted)} of memory; ${sayBytes(promised)} of ${sayBytes(limits.totalMemoryBytes)} ` +
      `are reserved for other sandboxes of this server, and ${sayBytes(free.memory_bytes)} are free.`,
    {
      hint: "Request less, pause or delete sandboxes that you do not need, or raise --max-total-memory of the server.",
      details: { full: "memory", asked_bytes: wanted, promised_bytes: promised, free_bytes: free.memory_bytes },
    },
  );
}

function noCpus(asked: number, free: number, total: number): SandboxerError {
  return new SandboxerError(
    "limit_reached",
    `The sandbox requests ${asked} CPUs; ${free} of ${total} are not reserved for other sandboxes of this server.`,
    {
      hint: "Request less, pause or delete sandboxes that you do not need, or raise --max-total-cpus of the server.",
      details: { full: "cpus", asked_cpus: asked, free_cpus: free },
    },
  );
}

function sum(items: readonly Asking[], amount: (item: Asking) => number): number {
  return items.reduce((total, item) => total + amount(item), 0);
}

function promisedCpus({ backend, spec }: Asking): number {
  return backend.capabilities.selfHosted ? (spec.resources.cpus ?? 0) : 0;
}

function promisedBytes({ backend, spec }: Asking): number {
  return backend.capabilities.selfHosted ? (spec.resources.memoryBytes ?? 0) : 0;
}

function sayBytes(bytes: number): string {
  return bytes >= GIB ? `${round(bytes / GIB)} GiB` : `${round(bytes / MIB)} MiB`;
}

/** Rounded down, so that the free memory in the message is available. */
function round(amount: number): number {
  return Math.floor(amount * 100) / 100;
}
