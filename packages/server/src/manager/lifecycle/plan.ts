import { aboutSchema, normalNetwork, parseDurationMs, resourcesInBytes, SandboxerError } from "@sandboxer/protocol";
import type { CreateRequestBody, HeadFlags, MaxLoss } from "@sandboxer/protocol";
import type { SandboxSpec } from "../../backends/backend.ts";
import { choosePlacement, type Placement, type PlacementCandidate } from "../../backends/placement.ts";
import { specHash } from "../../backends/spec-hash.ts";
import { applyProfile, type AppliedProfile } from "../../profiles/apply-profile.ts";
import type { SandboxFacts } from "../live-sandbox.ts";
import { checkUser } from "../processes/check-user.ts";
import { checkMaximum } from "../resource-limits.ts";
import type { PlanContext } from "../room-contexts.ts";
import { expiresAt } from "./time-to-live.ts";

/** A sandbox to be created, with every default decided and nothing done yet. */
export interface SandboxPlan extends Pick<
  SandboxFacts,
  "backend" | "spec" | "labels" | "flags" | "idleTimeoutMs" | "about"
> {
  readonly filesystemSnapshot: string | undefined;
  /** Whether the image's entrypoint is started in a fresh sandbox. */
  readonly entrypoint?: boolean;
}

/**
 * The defaults that neither request nor profile set. Clients of the WebSocket protocol get nothing that they did not
 * request; over HTTP a sandbox can be saved, moved and resumed wherever possible.
 */
export type Manner = "as asked" | "durable";

/** Fills in missing settings: from the profile, then from the server. */
export async function planSandbox(context: PlanContext, body: CreateRequestBody, manner: Manner): Promise<SandboxPlan> {
  const { defaultIdleTimeoutMs, profiles, resourceLimits } = context.options;
  const applied = body.profile === undefined ? undefined : applyProfile(profiles.get(body.profile), body);
  const request = applied?.request ?? body;
  const asked = specOf(request, applied);
  const placement = await placeSandbox(context, applied, request, asked);
  const spec = withDefaultNetwork(context, placement.backend, request, asked);
  // Before anything is done: a request by key must not lose the existing sandbox to one that is refused.
  checkUser(context.backend(placement.backend), spec.user);
  if (resourceLimits !== undefined) checkMaximum(resourceLimits, { backend: context.backend(placement.backend), spec });
  const flags = flagsOf(context, request, placement.backend, manner);
  return {
    backend: placement.backend,
    spec,
    labels: request.labels ?? {},
    flags,
    idleTimeoutMs: idleTimeoutMs(request.idle_timeout) ?? defaultIdleTimeoutMs,
    about: aboutSchema.parse({
      name: request.name,
      profile: request.profile,
      key: request.key,
      spec_hash: request.key === undefined ? null : specHash(placement.backend, spec),
      expires_at: expiresAt(context, request.ttl),
      on_expiry: request.on_expiry,
      placement: applied === undefined ? null : placement,
      max_loss: maxLossOf(context, request.max_loss, flags),
      restart: request.restart,
      affinity: request.affinity,
      retention: request.retention ?? null,
      public_ports: request.public_ports ?? [],
    }),
    filesystemSnapshot: request.filesystem_snapshot_name,
    ...(request.entrypoint === true ? { entrypoint: true } : {}),
  };
}

/** The server's own max_loss applies to sandboxes that can be saved; a requested one that cannot be kept is refused. */
export function maxLossOf(
  { options }: PlanContext,
  asked: MaxLoss | null | undefined,
  { enable_checkpoint }: HeadFlags,
): MaxLoss | null {
  if (asked !== undefined) return asked;
  return enable_checkpoint ? (options.defaultMaxLoss ?? null) : null;
}

export function promiseNeedsCheckpoints(): SandboxerError {
  return new SandboxerError("checkpoint_disabled", "max_loss requires checkpointing to be enabled.", {
    hint: "Create the sandbox with enable_checkpoint: true on a server with a store, or omit max_loss.",
  });
}

function specOf(request: CreateRequestBody, applied: AppliedProfile | undefined): SandboxSpec {
  return {
    ...(request.image === undefined ? {} : { image: request.image }),
    ...(request.user === undefined ? {} : { user: request.user }),
    env: request.env ?? {},
    resources: resourcesInBytes(request.resources ?? {}),
    network: normalNetwork(request.network ?? "none"),
    ...(request.inputs === undefined ? {} : { inputs: request.inputs }),
    ...(applied === undefined
      ? {}
      : { placement: applied.placement, setup: applied.setup, secretRefs: applied.secretRefs }),
  };
}

/** The server's own policy is for requests that say nothing, on backends that have a network. */
function withDefaultNetwork(
  context: PlanContext,
  backend: string,
  { network }: CreateRequestBody,
  spec: SandboxSpec,
): SandboxSpec {
  const { defaultNetwork = "none" } = context.options;
  if (network !== undefined || !context.backend(backend).capabilities.network) return spec;
  return { ...spec, network: defaultNetwork };
}

function flagsOf(context: PlanContext, request: CreateRequestBody, backend: string, manner: Manner): HeadFlags {
  const { snapshot, outlivesServer } = context.backend(backend).capabilities;
  // A sandbox that its provider keeps is not lost with this server: it is saved on request only.
  const savable = context.durable.saves && snapshot === "full" && !outlivesServer;
  const enable_checkpoint = request.enable_checkpoint ?? (manner === "durable" && savable);
  const ifUnsaid = manner === "durable" && enable_checkpoint;
  return {
    enable_checkpoint,
    enable_idle_timeout_auto_checkpoint: request.enable_idle_timeout_auto_checkpoint ?? ifUnsaid,
    enable_sandbox_handoff: request.enable_sandbox_handoff ?? ifUnsaid,
    on_disconnect: request.on_disconnect ?? "keep",
  };
}

/** Flags that require another feature, and the message if it is missing, in the words that clients know. */
export function checkNeeds(context: PlanContext, { flags, about, backend, filesystemSnapshot }: SandboxPlan): void {
  const stored = context.durable.saves;
  const refuse = (text: string): never => {
    throw new SandboxerError("checkpoint_disabled", text);
  };
  if (flags.enable_checkpoint && !stored) refuse("Checkpointing is not enabled on the server.");
  if (flags.enable_sandbox_handoff && !flags.enable_checkpoint) {
    refuse("Sandbox handoff requires checkpointing to be enabled.");
  }
  if (flags.enable_idle_timeout_auto_checkpoint && !flags.enable_checkpoint) {
    refuse("Idle timeout auto checkpoint requires checkpointing to be enabled.");
  }
  if (flags.on_disconnect === "checkpoint" && !flags.enable_checkpoint) {
    refuse("Checkpointing on disconnect requires checkpointing to be enabled.");
  }
  if (about.max_loss !== null && !flags.enable_checkpoint) throw promiseNeedsCheckpoints();
  if (about.restart === "always" && !flags.enable_checkpoint) {
    throw new SandboxerError("checkpoint_disabled", "restart: always requires checkpointing to be enabled.", {
      hint: "Create the sandbox with enable_checkpoint: true on a server with a store, or omit restart.",
    });
  }
  if (filesystemSnapshot !== undefined && !stored) refuse("Filesystem snapshot is not enabled on the server.");
  const { capabilities, name } = context.backend(backend);
  if (flags.enable_checkpoint && capabilities.snapshot !== "full") {
    throw new SandboxerError("not_supported", `The backend ${name} cannot save a running sandbox.`);
  }
}

export function idleTimeoutMs(given: number | string | undefined): number | undefined {
  if (given === undefined) return undefined;
  return typeof given === "number" ? given * 1000 : parseDurationMs(given);
}

/** Chooses the backend of a sandbox and gives the reason. Without a profile there is no choice. */
async function placeSandbox(
  context: PlanContext,
  applied: AppliedProfile | undefined,
  request: CreateRequestBody,
  spec: SandboxSpec,
): Promise<Placement> {
  if (applied === undefined) {
    const { name } = context.backend(request.backend ?? context.options.defaultBackend);
    const reason = request.backend === undefined ? "the server's default" : "named in the request";
    return { backend: name, strategy: "explicit", reason, passed_over: [] };
  }
  const known = applied.backends.filter((name) => context.options.backends.has(name));
  if (known.length === 0) throw noneHere(context, applied);
  const candidates = await Promise.all(known.map((name) => candidateOf(context, name, spec)));
  const { passed_over, ...chosen } = choosePlacement(candidates, applied.strategy, request.backend);
  const absent = applied.backends.filter((name) => !known.includes(name));
  const unknown = absent.map((name) => ({ backend: name, reason: "this server does not have it" }));
  return { ...chosen, passed_over: [...passed_over, ...unknown] };
}

async function candidateOf(context: PlanContext, name: string, spec: SandboxSpec): Promise<PlacementCandidate> {
  const backend = context.backend(name);
  const health = await backend.probe();
  // The price is asked for before the sandbox exists, so the id is a placeholder.
  const cost = health.ok ? await backend.estimateCost?.({ sandboxId: "", spec }) : undefined;
  const { selfHosted } = backend.capabilities;
  return { name, selfHosted, health, ...(cost === undefined ? {} : { cost }) };
}

function noneHere({ options }: PlanContext, { profile, backends }: AppliedProfile): SandboxerError {
  const has = [...options.backends.keys()].join(", ");
  return new SandboxerError("not_supported", `${profile} needs ${backends.join(" or ")}; this server has ${has}.`, {
    details: { misfit: "backend" },
  });
}
