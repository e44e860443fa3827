import { aboutSchema, parseDurationMs, resourcesInBytes, SandboxerError } from "@sandboxer/protocol";
import type { CreateRequestBody, HeadFlags, MaxLoss } from "@sandboxer/protocol";
import type { SandboxSpec } from "../../backends/backend.ts";
import { choosePlacement, type Placement, type PlacementCandidate } from "../../backends/placement.ts";
import { specHash } from "../../backends/spec-hash.ts";
import { applyProfile, type AppliedProfile } from "../../profiles/apply-profile.ts";
import type { SandboxFacts } from "../live-sandbox.ts";
import { checkMaximum } from "../resource-limits.ts";
import type { PlanContext } from "../room-contexts.ts";
import { expiresAt } from "./time-to-live.ts";

/** What is going to be made: every default decided, nothing done yet. */
export interface SandboxPlan extends Pick<
  SandboxFacts,
  "backend" | "spec" | "labels" | "flags" | "idleTimeoutMs" | "about"
> {
  readonly filesystemSnapshot: string | undefined;
}

/**
 * What a sandbox has that neither its request nor its profile says. Clients of the WebSocket protocol get nothing that
 * they did not ask for; over HTTP a sandbox can be saved, moved and woken again wherever that is possible.
 */
export type Manner = "as asked" | "durable";

/** Fills in what a request leaves open: from its profile, then from the server. */
export async function planSandbox(context: PlanContext, body: CreateRequestBody, manner: Manner): Promise<SandboxPlan> {
  const { defaultIdleTimeoutMs, profiles, resourceLimits } = context.options;
  const applied = body.profile === undefined ? undefined : applyProfile(profiles.get(body.profile), body);
  const request = applied?.request ?? body;
  const spec = specOf(request, applied);
  const placement = await placeSandbox(context, applied, request, spec);
  // Before anything is done: who asks by a key would lose what is there to a sandbox that is refused.
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
      placement: applied === undefined ? null : placement,
      max_loss: maxLossOf(context, request.max_loss, flags),
      retention: request.retention ?? null,
    }),
    filesystemSnapshot: request.filesystem_snapshot_name,
  };
}

/** The server's own promise is for sandboxes that can be saved; one that was asked for, and cannot be kept, is refused. */
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
    env: request.env ?? {},
    resources: resourcesInBytes(request.resources ?? {}),
    network: request.network ?? "none",
    ...(request.inputs === undefined ? {} : { inputs: request.inputs }),
    ...(applied === undefined
      ? {}
      : { placement: applied.placement, setup: applied.setup, secretRefs: applied.secretRefs }),
  };
}

function flagsOf(context: PlanContext, request: CreateRequestBody, backend: string, manner: Manner): HeadFlags {
  const { snapshot, outlivesServer } = context.backend(backend).capabilities;
  // What its provider keeps is not lost with this server: it is saved when somebody asks for it.
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

/** The flags that need another thing, and what is missing, in words that clients know. */
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

/** Which backend makes a sandbox, and why that one. Without a profile there is nothing to choose. */
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
  // What it would cost is asked for before there is a sandbox, so its id is nobody's.
  const cost = health.ok ? await backend.estimateCost?.({ sandboxId: "", spec }) : undefined;
  const { selfHosted } = backend.capabilities;
  return { name, selfHosted, health, ...(cost === undefined ? {} : { cost }) };
}

function noneHere({ options }: PlanContext, { profile, backends }: AppliedProfile): SandboxerError {
  const has = [...options.backends.keys()].join(", ");
  return new SandboxerError("not_supported", `${profile} needs ${backends.join(" or ")}; this server has ${has}.`);
}
