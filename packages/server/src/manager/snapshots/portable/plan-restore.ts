import { aboutSchema, SandboxerError } from "@sandboxer/protocol";
import type { HeadFlags, MaxLoss, Profile, RestoreRequestBody } from "@sandboxer/protocol";
import type { SandboxSpec } from "../../../backends/backend.ts";
import type { StoredSnapshot } from "../../../checkpoints/snapshot-record.ts";
import { backendsOf } from "../../../profiles/profile-backends.ts";
import type { ManagerContext } from "../../context.ts";
import { expiresAt } from "../../lifecycle/time-to-live.ts";
import { idleTimeoutMs, maxLossOf, type SandboxPlan } from "../../lifecycle/plan.ts";
import { labelOf } from "../source.ts";
import { parseStoredSpec } from "../../stored-facts.ts";
import { loadWay } from "./loadable.ts";

const NEVER_SAVED: HeadFlags = {
  enable_checkpoint: false,
  enable_idle_timeout_auto_checkpoint: false,
  enable_sandbox_handoff: false,
  on_disconnect: "keep",
};

/** As the captured sandbox was created, except for its key and expiry. */
export function planOfSnapshot(
  context: ManagerContext,
  snapshot: StoredSnapshot,
  body: RestoreRequestBody,
): SandboxPlan {
  const { spec, labels } = parseStoredSpec(`snapshots/${snapshot.id}/record.json`, snapshot.spec);
  const profile = body.profile === undefined ? undefined : context.options.profiles.get(body.profile);
  const backend = context.backend(body.backend ?? backendFor(snapshot.backend, profile)).name;
  if (body.image !== undefined) checkImage(context, snapshot, backend);
  const flags = flagsFor(context, snapshot, backend);
  return {
    backend,
    spec: {
      ...specFor(context, snapshot.backend, backend, spec, body),
      env: { ...spec.env, ...body.env },
      ...(body.inputs === undefined ? {} : { inputs: { ...spec.inputs, ...body.inputs } }),
      ...(profile === undefined ? {} : { placement: { ...profile.placement }, secretRefs: { ...profile.secret_refs } }),
    },
    labels: body.labels ?? labels,
    flags,
    idleTimeoutMs: idleTimeoutMs(body.idle_timeout) ?? snapshot.idle_timeout * 1000,
    about: aboutSchema.parse({
      name: body.name,
      profile: profile?.name ?? snapshot.profile,
      expires_at: expiresAt(context, body.ttl),
      on_expiry: body.on_expiry ?? (profile ?? savedProfile(context, snapshot))?.ttl?.on_expiry,
      max_loss: body.max_loss === undefined ? promised(context, snapshot, profile, flags) : body.max_loss,
      restart: body.restart ?? (flags.enable_checkpoint ? profile?.restart : undefined),
      affinity: body.affinity ?? profile?.affinity ?? snapshot.affinity,
      retention: body.retention === undefined ? (profile?.retention ?? snapshot.retention) : body.retention,
    }),
    filesystemSnapshot: undefined,
  };
}

/** The profile of the captured sandbox, whose rules on lifetimes apply too. */
function savedProfile({ options }: ManagerContext, snapshot: StoredSnapshot): Profile | undefined {
  return snapshot.profile === null ? undefined : options.profiles.find(snapshot.profile);
}

/** The captured sandbox's max_loss, or that of the profile that is given now; none if it cannot be saved. */
function promised(
  context: ManagerContext,
  snapshot: StoredSnapshot,
  profile: Profile | undefined,
  flags: HeadFlags,
): MaxLoss | null {
  if (!flags.enable_checkpoint) return null;
  return maxLossOf(context, profile?.max_loss ?? snapshot.max_loss, flags);
}

/** A state that a backend loads by itself includes its root filesystem. */
function checkImage(context: ManagerContext, snapshot: StoredSnapshot, backend: string): void {
  if (loadWay(context.backend(backend), labelOf(snapshot)) !== "native") return;
  throw new SandboxerError("bad_request", `A snapshot of the kind ${snapshot.kind} cannot be given another image.`, {
    hint: "Omit the image, or take the snapshot with the mode workspace.",
  });
}

/** The backend that it was captured on, if the profile lists it, otherwise the profile's first. */
function backendFor(captured: string, profile: Profile | undefined): string {
  const offered = profile === undefined ? [captured] : backendsOf(profile);
  return offered.includes(captured) ? captured : (offered[0] ?? captured);
}

/** On another backend, unsupported limits and users are dropped, and the image may differ. */
function specFor(
  context: ManagerContext,
  from: string,
  to: string,
  spec: SandboxSpec,
  { image }: RestoreRequestBody,
): SandboxSpec {
  const { image: captured, user, ...rest } = spec;
  const wanted = image === undefined ? captured : (image ?? undefined);
  const hasLimits = to === from || context.backend(to).capabilities.limits;
  return {
    ...rest,
    ...(user === undefined || context.backend(to).capabilities.users !== true ? {} : { user }),
    ...(wanted === undefined ? {} : { image: wanted }),
    resources: hasLimits ? spec.resources : {},
  };
}

/**
 * A sandbox keeps its flags where they are possible. A sandbox from a backend that could not save it can be saved from
 * now on, like one that is created there: its old backend kept it when the server ended, and nothing else would.
 */
function flagsFor(context: ManagerContext, { backend: from, flags }: StoredSnapshot, to: string): HeadFlags {
  if (to === from) return flags;
  if (context.backend(to).capabilities.snapshot !== "full") return NEVER_SAVED;
  const couldSave = context.options.backends.get(from)?.capabilities.snapshot === "full";
  if (couldSave || !context.durable.saves) return flags;
  return {
    enable_checkpoint: true,
    enable_idle_timeout_auto_checkpoint: true,
    enable_sandbox_handoff: true,
    on_disconnect: "keep",
  };
}
