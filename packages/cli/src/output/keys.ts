import type { KeyRecord } from "@sandboxer/server/keys";
import { formatTable } from "./table.ts";

/** Without the hash, which nobody needs to see. */
export type ShownKey = Pick<KeyRecord, "id" | "name" | "scope" | "created_at" | "expires_at" | "revoked_at"> & {
  readonly status: string;
};

export function formatKeys(keys: readonly ShownKey[]): string {
  if (keys.length === 0) return "There are no keys.\n";
  const rows = keys.map(({ id, name, scope, status, created_at: created, expires_at: expires }) => [
    id,
    name,
    scope,
    status,
    day(created),
    expires === null ? "never" : day(expires),
  ]);
  return formatTable([["id", "name", "scope", "status", "created", "expires"], ...rows]);
}

function day(time: string): string {
  return time.slice(0, 10);
}
