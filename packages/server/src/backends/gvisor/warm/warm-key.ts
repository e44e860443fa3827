import type { AcquireRequest } from "../../backend.ts";
import type { CompleteResources } from "../oci-spec.ts";

export interface WarmDefaults {
  readonly image: string;
  readonly resources: CompleteResources;
}

/**
 * What a sandbox that is started before anybody asks for it must have been started with to be the one that is asked for:
 * all that is fixed at its start. Its id, its name and its variables are not. What only has the server's own defaults may
 * be anybody's; all else is kept for who asked for it. Undefined: it cannot be started ahead.
 */
export function warmKey({ spec, tenant }: AcquireRequest, defaults: WarmDefaults): string | undefined {
  // A network of its own has an address, and what it may reach is decided when it is made.
  if (spec.network !== "none") return undefined;
  const image = spec.image ?? defaults.image;
  const limits = limitsOf(spec, defaults);
  const own = image !== defaults.image || limits !== sorted(defaults.resources);
  if (own && tenant === undefined) return undefined;
  return JSON.stringify(["fresh", image, limits, own ? tenant : null]);
}

/** The same for one that begins with a saved state, which is always kept for who asked for it. */
export function stateKey(
  { spec, tenant }: AcquireRequest,
  stateId: string,
  defaults: WarmDefaults,
): string | undefined {
  if (spec.network !== "none" || tenant === undefined) return undefined;
  return stateKeyStart(stateId) + JSON.stringify([spec.image, limitsOf(spec, defaults), tenant]);
}

/** What the keys of a state begin with, and no others. */
export function stateKeyStart(stateId: string): string {
  return `${JSON.stringify(["state", stateId])} `;
}

function limitsOf({ resources }: AcquireRequest["spec"], defaults: WarmDefaults): string {
  return sorted({ ...defaults.resources, ...resources });
}

function sorted(resources: CompleteResources): string {
  return JSON.stringify(Object.entries(resources).toSorted(([left], [right]) => left.localeCompare(right)));
}
