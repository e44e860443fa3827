import { parseDurationMs, SandboxerError } from "@sandboxer/protocol";
import type { CreateRequestBody, Profile, Strategy } from "@sandboxer/protocol";
import { backendsOf, requestedBackend } from "./profile-backends.ts";
import { didYouMean } from "../support/nearest-name.ts";

/** The settings of a sandbox after a profile filled in missing ones. */
export interface AppliedProfile {
  /** The request with the profile's values where it had none; `inputs` are complete. */
  readonly request: CreateRequestBody;
  /** The name of the profile. */
  readonly profile: string;
  /** The allowed backends, in the profile's order; never empty. A requested one is the only one. */
  readonly backends: readonly string[];
  readonly strategy: Strategy;
  readonly isolation: Profile["isolation"];
  readonly placement: Readonly<Record<string, string>>;
  readonly setup: readonly string[];
  /** Variables and the names of their secrets; the values are resolved when needed, and never stored. */
  readonly secretRefs: Readonly<Record<string, string>>;
  /** Undefined: no expiry. */
  readonly ttlMs: number | undefined;
  /** The limit that also applies when the lifetime is extended. */
  readonly maxTtlMs: number | undefined;
}

/**
 * Merges a request with its profile. The request wins; maps (env, labels, resources, inputs) are merged key by key.
 * Pure: nothing is looked up, and backends need not exist.
 */
export function applyProfile(profile: Profile, request: CreateRequestBody): AppliedProfile {
  const { ttl, ttlMs, maxTtlMs } = timeToLive(profile, request.ttl);
  const env = { ...profile.env, ...request.env };
  const secretRefs = Object.fromEntries(
    Object.entries(profile.secret_refs ?? {}).filter(([name]) => !Object.hasOwn(env, name)),
  );
  const backend = requestedBackend(profile, request.backend);
  return {
    request: withoutUndefined({
      ...request,
      profile: profile.name,
      backend,
      image: request.image ?? profile.image,
      user: request.user ?? profile.user,
      inputs: mergeInputs(profile, request.inputs ?? {}),
      env,
      labels: { ...profile.labels, ...request.labels },
      resources: { ...profile.resources, ...request.resources },
      network: request.network ?? profile.network,
      ttl,
      on_expiry: request.on_expiry ?? profile.ttl?.on_expiry,
      affinity: request.affinity ?? profile.affinity,
      retention: request.retention === undefined ? profile.retention : request.retention,
      idle_timeout: request.idle_timeout ?? profile.ttl?.idle,
      ...checkpointFlags(profile, request),
    }),
    profile: profile.name,
    backends: backend === undefined ? backendsOf(profile) : [backend],
    strategy: profile.strategy ?? "explicit",
    isolation: profile.isolation,
    placement: { ...profile.placement },
    setup: [...(profile.setup ?? [])],
    secretRefs,
    ttlMs,
    maxTtlMs,
  };
}

interface TimeToLive {
  /** As written; undefined: no expiry. */
  readonly ttl: string | undefined;
  readonly ttlMs: number | undefined;
  readonly maxTtlMs: number | undefined;
}

/** With a limit and no default, the limit is the default: otherwise an omitted ttl would mean forever. */
export function timeToLive(profile: Profile, wanted: string | undefined): TimeToLive {
  const ttl = wanted ?? profile.ttl?.default ?? profile.ttl?.max;
  const maxText = profile.ttl?.max;
  const ttlMs = ttl === undefined ? undefined : parseDurationMs(ttl);
  const maxTtlMs = maxText === undefined ? undefined : parseDurationMs(maxText);
  if (ttlMs !== undefined && maxTtlMs !== undefined && ttlMs > maxTtlMs) {
    throw new SandboxerError("ttl_too_long", `A ttl of ${ttl} is longer than ${profile.name} allows: ${maxText}.`, {
      details: { ttl, max: maxText, profile: profile.name },
    });
  }
  return { ttl, ttlMs, maxTtlMs };
}

/** A request without checkpoints also drops the profile's settings that need them. */
function checkpointFlags(profile: Profile, request: CreateRequestBody): Partial<CreateRequestBody> {
  const refused = request.enable_checkpoint === false;
  const defaults: Partial<Profile> = refused ? {} : profile;
  return {
    enable_checkpoint: request.enable_checkpoint ?? profile.enable_checkpoint,
    enable_idle_timeout_auto_checkpoint:
      request.enable_idle_timeout_auto_checkpoint ?? defaults.enable_idle_timeout_auto_checkpoint,
    enable_sandbox_handoff: request.enable_sandbox_handoff ?? defaults.enable_sandbox_handoff,
    on_disconnect: request.on_disconnect ?? defaults.on_disconnect,
    max_loss: request.max_loss === undefined ? defaults.max_loss : request.max_loss,
    restart: request.restart ?? defaults.restart,
  };
}

function withoutUndefined(request: CreateRequestBody): CreateRequestBody {
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined));
}

/** The request's inputs with the profile's defaults. An undeclared input is refused as a mistake. */
function mergeInputs(profile: Profile, given: Readonly<Record<string, string>>): Record<string, string> {
  const declared = new Map(Object.entries(profile.inputs ?? {}));
  const unknown = Object.keys(given).filter((name) => !declared.has(name));
  if (unknown.length > 0) throw unknownInputs(profile, unknown, [...declared.keys()]);
  const missing = [...declared].filter(([name, input]) => input.required === true && !Object.hasOwn(given, name));
  if (missing.length > 0) {
    const named = missing.map(([name, { description }]) =>
      description === undefined ? name : `${name} (${description})`,
    );
    throw new SandboxerError("bad_request", `${profile.name} needs these inputs: ${named.join(", ")}.`, {
      hint: `Give ${missing.map(([name]) => `inputs.${name}`).join(" and ")}.`,
      details: { missing: missing.map(([name]) => name), profile: profile.name },
    });
  }
  const defaults = [...declared].flatMap(([name, input]) =>
    input.default === undefined ? [] : [[name, input.default]],
  );
  return { ...Object.fromEntries(defaults), ...given };
}

function unknownInputs(profile: Profile, unknown: readonly string[], known: readonly string[]): SandboxerError {
  const [first = ""] = unknown;
  const list = unknown.map((name) => JSON.stringify(name.slice(0, 128))).join(", ");
  return new SandboxerError("bad_request", `${profile.name} has no inputs ${list}.${didYouMean(first, known)}`, {
    hint: known.length === 0 ? "The profile takes no inputs." : `Its inputs are ${known.join(", ")}.`,
    details: { unknown, profile: profile.name },
  });
}
