import { availableParallelism } from "node:os";
import type { NetworkPolicy, SandboxRecord } from "@sandboxer/protocol";
import type { E2bServices } from "../e2b-services.ts";
import { metadataOf, RESERVED } from "../reserved-labels.ts";

/** The version of envd whose features E2B's clients may use. */
export const ENVD_VERSION = "0.6.4";

/** Unused by the clients, but some fail without it. */
const CLIENT_ID = "sandboxer";
/** For sandboxes that never end. */
const NEVER = "2100-01-01T00:00:00.000Z";
const MIB = 1024 * 1024;
const DEFAULT_DISK_MB = 1024;

/** `creating`, `restoring` and `saving` pass; everything else does not exist for E2B's clients. */
export type E2bState = "running" | "paused";

/** Undefined: the sandbox does not exist any more. */
export function e2bStateOf({ state }: Pick<SandboxRecord, "state">): E2bState | undefined {
  if (state === "stored") return "paused";
  if (state === "destroying" || state === "destroyed" || state === "unreachable") return undefined;
  return "running";
}

/** The response of create, connect, resume and fork. */
export function sandboxView({ tokens, addresses }: E2bServices, record: SandboxRecord) {
  return {
    templateID: templateOf(record),
    sandboxID: record.id,
    clientID: CLIENT_ID,
    envdVersion: ENVD_VERSION,
    envdAccessToken: tokens.of("envd", record.id),
    trafficAccessToken: tokens.of("traffic", record.id),
    domain: addresses.domain,
    ...(record.name === null ? {} : { alias: record.name }),
  };
}

/** An entry of a list. */
export function listedView({ manager }: E2bServices, record: SandboxRecord, state: E2bState) {
  const { resources } = record;
  const { defaultResources = {} } = manager.backendFacts(record.backend);
  const inMib = (bytes: number | undefined): number | undefined =>
    bytes === undefined ? undefined : Math.floor(bytes / MIB);
  return {
    templateID: templateOf(record),
    sandboxID: record.id,
    clientID: CLIENT_ID,
    startedAt: record.created_at,
    endAt: endOf(record, state),
    envdVersion: ENVD_VERSION,
    cpuCount: Math.ceil(resources.cpus ?? defaultResources.cpus ?? availableParallelism()),
    memoryMB: resources.memory_mb ?? inMib(defaultResources.memoryBytes) ?? 512,
    diskSizeMB: resources.disk_mb ?? inMib(defaultResources.diskBytes) ?? DEFAULT_DISK_MB,
    metadata: metadataOf(record.labels),
    state,
    ...(record.name === null ? {} : { alias: record.name }),
  };
}

export function detailView(services: E2bServices, record: SandboxRecord, state: E2bState) {
  const { labels, network } = record;
  return {
    ...listedView(services, record, state),
    envdAccessToken: services.tokens.of("envd", record.id),
    domain: services.addresses.domain,
    allowInternetAccess: network !== "none",
    network: { ...networkView(network), allowPublicTraffic: labels[RESERVED.traffic] !== "private" },
    lifecycle: {
      autoResume: labels[RESERVED.autoResume] === "on",
      onTimeout: record.on_expiry === "delete" ? "kill" : "pause",
    },
  };
}

export function templateOf({ labels, profile, image }: SandboxRecord): string {
  return labels[RESERVED.template] ?? profile ?? image ?? "base";
}

/** A paused sandbox has ended when it was saved. */
function endOf({ expires_at, checkpoint, created_at }: SandboxRecord, state: E2bState): string {
  if (state === "paused") return checkpoint?.created_at ?? created_at;
  return expires_at ?? NEVER;
}

function networkView(network: NetworkPolicy): { allowOut?: readonly string[]; denyOut?: readonly string[] } {
  if (network === "none") return { denyOut: ["0.0.0.0/0"] };
  if (network === "open") return {};
  if (network.allow !== undefined) return { allowOut: network.allow, denyOut: ["0.0.0.0/0"] };
  return { denyOut: network.deny ?? [] };
}
