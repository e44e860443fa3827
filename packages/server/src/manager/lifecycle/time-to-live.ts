import { parseDurationMs } from "@sandboxer/protocol";
import { timeToLive } from "../../profiles/apply-profile.ts";
import type { PlanContext } from "../room-contexts.ts";

/** The expiry time of a lifetime that begins now. */
export function expiresAt({ options }: PlanContext, ttl: string | undefined): string | null {
  return ttl === undefined ? null : new Date(options.clock.wallMs() + parseDurationMs(ttl)).toISOString();
}

/** Applies a profile's default and limit to a lifetime. A profile that no longer exists sets none. */
export function ttlWithin(
  { options }: PlanContext,
  profile: string | null,
  ttl: string | undefined,
): string | undefined {
  const found = profile === null ? undefined : options.profiles.find(profile);
  return found === undefined ? ttl : timeToLive(found, ttl).ttl;
}

export function hasExpired({ options }: PlanContext, expires_at: string | null | undefined): boolean {
  return expires_at != null && Date.parse(expires_at) <= options.clock.wallMs();
}
