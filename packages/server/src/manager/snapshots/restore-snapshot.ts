import type { About, Carried, RestoreRequestBody } from "@sandboxer/protocol";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "../context.ts";
import { createSandbox, type CreatedSandbox } from "../lifecycle/create.ts";
import { ttlWithin } from "../lifecycle/time-to-live.ts";
import { carriedBy, checkCarried, withLost } from "./portable/carried.ts";
import { checkMachine } from "../ownership/fits-here.ts";
import { loadWay } from "./portable/loadable.ts";
import { planOfSnapshot } from "./portable/plan-restore.ts";
import { findSnapshot, forkSource, labelOf, popularSource, type SandboxSource, sourceOf } from "./source.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";

export interface RestoredSandbox extends CreatedSandbox {
  readonly carried: Carried;
}

/** Creates a new sandbox from a snapshot: with a new id, a new token, and the request's own settings. */
export async function restoreSnapshot(
  context: ManagerContext,
  idOrName: string,
  body: RestoreRequestBody,
  options: VerbOptions = {},
  { isFork = false }: { readonly isFork?: boolean } = {},
): Promise<RestoredSandbox> {
  const snapshot = await findSnapshot(context, idOrName);
  const carried = await carriedBy(context, snapshot, body);
  // Loading it shows whether a snapshot that was found damaged still is.
  if (snapshot.state === "ready") checkCarried(carried);
  const source = isFork ? forkSource(context, snapshot) : popularSource(context, snapshot);
  const restored = await restoreFrom(context, snapshot, body, options, { source });
  return { ...restored, carried: withLost(carried, restored.lost) };
}

export async function restoreFrom(
  context: ManagerContext,
  snapshot: StoredSnapshot,
  body: RestoreRequestBody,
  options: VerbOptions,
  { about, source = sourceOf(context, snapshot) }: { readonly about?: About; readonly source?: SandboxSource } = {},
): Promise<CreatedSandbox> {
  options.operation?.concerns({ snapshotId: snapshot.id });
  const planned = planOfSnapshot(context, snapshot, withinProfile(context, body.profile ?? snapshot.profile, body));
  const plan = about === undefined ? planned : { ...planned, about };
  const label = labelOf(snapshot);
  if (loadWay(context.backend(plan.backend), label) === "native") checkMachine(context, plan.backend, label);
  const created = await createSandbox(context, { plan, source }, options);
  const data = { snapshot_id: snapshot.id, from: snapshot.sandbox_id };
  context.events.append({ type: "sandbox.restored", sandboxId: created.sandbox.id, data });
  return created;
}

/** A profile's lifetime limit applies here too. */
export function withinProfile(
  context: ManagerContext,
  profile: string | null,
  body: RestoreRequestBody,
): RestoreRequestBody {
  const ttl = ttlWithin(context, profile, body.ttl);
  return ttl === undefined ? body : { ...body, ttl };
}
