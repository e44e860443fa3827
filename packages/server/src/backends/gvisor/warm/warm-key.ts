import type { AcquireRequest } from "../../backend.ts";
import type { CompleteResources } from "../oci-spec.ts";

export interface WarmDefaults {
  readonly image: string;
  readonly resources: CompleteResources;
}

/**
 * The settings that are fixed at the start of a pooled sandbox and must match the request: not its id, name and
 * variables. A sandbox with only the server's defaults may go to anyone; others are kept for their caller. Undefined:
 * it cannot be pooled.
 */
export function warmKey({ spec, tenant }: AcquireRequest, defaults: WarmDefaults): string | undefined {
  const image = spec.image ?? defaults.image;
  const limits = limitsOf(spec, defaults);
  const own = image !== defaults.image || limits !== sorted(defaults.resources) || spec.user !== undefined;
  if (own && tenant === undefined) return undefined;
  return JSON.stringify(["fresh", image, limits, spec.user ?? null, own ? tenant : null]);
}

/** The same for one with a saved state, which is always kept for its caller. */
export function stateKey(
  { spec, tenant }: AcquireRequest,
  stateId: string,
  defaults: WarmDefaults,
): string | undefined {
  if (tenant === undefined) return undefined;
  return stateKeyStart(stateId) + JSON.stringify([spec.image, limitsOf(spec, defaults), spec.user, tenant]);
}

/** The common prefix of a state's keys. */
export function stateKeyStart(stateId: string): string {
  return `${JSON.stringify(["state", stateId])} `;
}

function limitsOf({ resources }: AcquireRequest["spec"], defaults: WarmDefaults): string {
  return sorted({ ...defaults.resources, ...resources });
}

function sorted(resources: CompleteResources): string {
  return JSON.stringify(Object.entries(resources).toSorted(([left], [right]) => left.localeCompare(right)));
}
