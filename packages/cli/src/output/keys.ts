import type { KeyRecord } from "@sandboxer/server/keys";
import { formatTable } from "./table.ts";

/** Without the hash. */
export type ShownKey = Pick<KeyRecord, "id" | "name" | "scope" | "created_at" | "expires_at" | "revoked_at"> & {
  readonly status: string;
  /** The secret that encrypts data of its sandboxes; null: the server's own. */
  readonly encryption_key: string | null;
};

export function formatKeys(keys: readonly ShownKey[]): string {
  if (keys.length === 0) return "No keys found.\n";
  const isEncrypting = keys.some(({ encryption_key }) => encryption_key !== null);
  const rows = keys.map(({ id, name, scope, status, created_at: created, expires_at: expires, encryption_key }) => [
    id,
    name,
    scope,
    status,
    day(created),
    expires === null ? "never" : day(expires),
    ...(isEncrypting ? [encryption_key ?? ""] : []),
  ]);
  return formatTable([
    ["id", "name", "scope", "status", "created", "expires", ...(isEncrypting ? ["encryption key"] : [])],
    ...rows,
  ]);
}

function day(time: string): string {
  return time.slice(0, 10);
}
