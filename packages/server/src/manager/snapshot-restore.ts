import { aboutSchema, type About, type RestoreRequestBody } from "@sandboxer/protocol";
import type { StoredSnapshot } from "../checkpoints/snapshot-record.ts";
import { timeToLive } from "../profiles/apply-profile.ts";
import type { ManagerContext } from "./context.ts";
import { createSandbox, type CreatedSandbox } from "./create.ts";
import { expiresAt, idleTimeoutMs, type SandboxPlan } from "./plan.ts";
import { findSnapshot, sourceOf } from "./snapshot-source.ts";
import { parseStoredSpec } from "./stored-facts.ts";
import type { VerbOptions } from "./tracked.ts";

/** A new sandbox with the state of a snapshot: a new id, a new token, and what the request has of its own. */
export async function restoreSnapshot(
  context: ManagerContext,
  idOrName: string,
  body: RestoreRequestBody,
  options: VerbOptions = {},
): Promise<CreatedSandbox> {
  return await restoreFrom(context, await findSnapshot(context, idOrName), body, options);
}

export async function restoreFrom(
  context: ManagerContext,
  snapshot: StoredSnapshot,
  body: RestoreRequestBody,
  options: VerbOptions,
  about?: About,
): Promise<CreatedSandbox> {
  options.operation?.concerns({ snapshotId: snapshot.id });
  const planned = planOfSnapshot(context, snapshot, withinProfile(context, snapshot.profile, body));
  const plan = about === undefined ? planned : { ...planned, about };
  const created = await createSandbox(context, { plan, source: sourceOf(context, snapshot) }, options);
  const data = { snapshot_id: snapshot.id, from: snapshot.sandbox_id };
  context.events.append({ type: "sandbox.restored", sandboxId: created.sandbox.id, data });
  return created;
}

/** How long a profile lets its sandboxes live holds for these too. A profile that is gone by now says nothing. */
export function withinProfile(
  { options }: ManagerContext,
  profile: string | null,
  body: RestoreRequestBody,
): RestoreRequestBody {
  const found = profile === null ? undefined : options.profiles.find(profile);
  const ttl = found === undefined ? body.ttl : timeToLive(found, body.ttl).ttl;
  return ttl === undefined ? body : { ...body, ttl };
}

/** As the captured sandbox was made; its key and its end of life are its own. */
function planOfSnapshot(context: ManagerContext, snapshot: StoredSnapshot, body: RestoreRequestBody): SandboxPlan {
  const { spec, labels } = parseStoredSpec(`snapshots/${snapshot.id}/record.json`, snapshot.spec);
  return {
    backend: snapshot.backend,
    spec: {
      ...spec,
      env: { ...spec.env, ...body.env },
      ...(body.inputs === undefined ? {} : { inputs: { ...spec.inputs, ...body.inputs } }),
      ...(body.placement === undefined ? {} : { placement: { ...spec.placement, ...body.placement } }),
    },
    labels: body.labels ?? labels,
    flags: snapshot.flags,
    idleTimeoutMs: idleTimeoutMs(body.idle_timeout) ?? snapshot.idle_timeout * 1000,
    about: aboutSchema.parse({
      name: body.name,
      profile: snapshot.profile,
      expires_at: expiresAt(context, body.ttl),
    }),
    filesystemSnapshot: undefined,
  };
}
