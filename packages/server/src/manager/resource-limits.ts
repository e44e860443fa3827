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
}

interface Asking {
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

/**
 * Refuses a sandbox whose memory is no longer free. Only requested memory is reserved: sandboxes that request none
 * share the rest, under the default limit of each.
 */
export function checkMemory(limits: ResourceLimits, asking: Asking, others: Iterable<Asking>): void {
  const wanted = promisedBytes(asking);
  const promised = [...others].reduce((sum, other) => sum + promisedBytes(other), 0);
  const free = Math.max(0, limits.totalMemoryBytes - promised);
  if (wanted <= free) return;
  throw new SandboxerError(
    "limit_reached",
    `The sandbox requests ${sayBytes(wanted)} of memory; ${sayBytes(promised)} of ${sayBytes(limits.totalMemoryBytes)} ` +
      `are reserved for other sandboxes of this server, and ${sayBytes(free)} are free.`,
    {
      hint: "Request less, pause or delete sandboxes that you do not need, or raise --max-total-memory of the server.",
      details: { asked_bytes: wanted, promised_bytes: promised, free_bytes: free },
    },
  );
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
