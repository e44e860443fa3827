import {
  type Affinity,
  type CreateRequestBody,
  type Head,
  resourcesInBytes,
  type RestoreRequestBody,
} from "@sandboxer/protocol";
import type { Resources, StateNeeds } from "../../backends/backend.ts";
import { backendNamed } from "../../profiles/profile-backends.ts";
import { applyProfile } from "../../profiles/apply-profile.ts";
import type { ManagerContext } from "../context.ts";
import { findSnapshot, labelOf } from "../snapshots/source.ts";
import { parseStoredSpec, storedFacts } from "../stored-facts.ts";
import { imageOf, stateNeeds } from "./fits-here.ts";

/** The properties of a sandbox that decide which servers may run it. */
export interface Wanted {
  /** Any of them will do; none: the server's default one. */
  readonly backends: readonly string[];
  readonly affinity: Affinity | null | undefined;
  /** Of the saved state that it starts from; absent: it has none, or they are unknown. */
  readonly needs?: StateNeeds | undefined;
  readonly resources: Resources;
  /** The container image of a fresh sandbox; absent: the server's default one, or a saved state. */
  readonly image?: string | undefined;
}

/** For a new sandbox. */
export function wantedByRequest({ options }: ManagerContext, body: CreateRequestBody): Wanted {
  // The server that is asked refuses an unknown profile.
  const profile = body.profile === undefined ? undefined : options.profiles.find(body.profile);
  const applied = profile === undefined ? undefined : applyProfile(profile, body);
  const named = body.backend === undefined ? [] : [backendNamed(body.backend)];
  const { affinity, image, resources = {} } = applied?.request ?? body;
  const backends = applied?.backends ?? named;
  return { backends, affinity, image, resources: reserved(options, backends, resourcesInBytes(resources)) };
}

/** For a new sandbox with the state of a snapshot. */
export async function wantedBySnapshot(
  context: ManagerContext,
  idOrName: string,
  body: RestoreRequestBody,
): Promise<Wanted> {
  const snapshot = await findSnapshot(context, idOrName);
  const profile = body.profile === undefined ? undefined : context.options.profiles.find(body.profile);
  const backend = body.backend ?? snapshot.backend;
  const { spec } = parseStoredSpec(`snapshots/${snapshot.id}/record.json`, snapshot.spec);
  return {
    backends: [backend],
    affinity: body.affinity ?? profile?.affinity ?? snapshot.affinity,
    needs: stateNeeds(context, backend, labelOf(snapshot)),
    resources: reserved(context.options, [backend], spec.resources),
  };
}

/** For a sandbox that exists. */
export async function wantedByHead(context: ManagerContext, sandboxId: string, head: Head): Promise<Wanted> {
  const { backend, about, spec } = storedFacts(sandboxId, head);
  const image = await imageOf(context, sandboxId, head);
  return {
    backends: [backend],
    affinity: about.affinity,
    needs: image === undefined ? undefined : stateNeeds(context, backend, image.manifest),
    resources: reserved(context.options, [backend], spec.resources),
  };
}

/** What a sandbox takes from the machine of its server: nothing, if it runs at a provider. */
function reserved(
  { backends: known }: Pick<ManagerContext["options"], "backends">,
  backends: readonly string[],
  resources: Resources,
): Resources {
  return backends.some((name) => known.get(name)?.capabilities.selfHosted === false) ? {} : resources;
}
