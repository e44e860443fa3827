import { asSandboxerError } from "@sandboxer/protocol";
import type { SandboxBackend, SandboxSpec } from "../../../backends/backend.ts";
import { requestedBackend } from "../../../profiles/profile-backends.ts";
import type { PlanContext } from "../../room-contexts.ts";

export interface Traveller {
  /** The backend that it was captured on, or runs on. */
  readonly from: string;
  /** The profile that created it, and the profile for the new sandbox. */
  readonly madeBy: string | null;
  readonly profile: string | null;
  /** The spec of the captured sandbox. */
  readonly spec: SandboxSpec;
}

/** Why a backend cannot run such a sandbox, whatever state it starts from; null if it can. */
export function whyNotAllowed(context: PlanContext, traveller: Traveller, to: SandboxBackend): string | null {
  const { from, madeBy, profile, spec } = traveller;
  if (to.name !== from || profile !== madeBy) {
    const forbidden = whyNotByProfile(context, traveller, to.name);
    if (forbidden !== null) return forbidden;
  }
  if (spec.network === "none" || to.capabilities.network) return null;
  return `The captured sandbox has network access, but ${to.name} offers none.`;
}

/** A profile lists the providers that its sandboxes and their secrets may go to. */
function whyNotByProfile({ options }: PlanContext, { profile: name, spec }: Traveller, to: string): string | null {
  const profile = name === null ? undefined : options.profiles.find(name);
  if (profile === undefined) {
    const secrets = Object.keys(spec.secretRefs ?? {}).length > 0;
    return secrets ? `It uses secrets of a profile that no longer exists, so it cannot be restored on ${to}.` : null;
  }
  try {
    requestedBackend(profile, to);
    return null;
  } catch (thrown) {
    return asSandboxerError(thrown).message;
  }
}
