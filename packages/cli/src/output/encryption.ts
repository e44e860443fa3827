import type { SandboxRecord } from "@sandboxer/protocol";

/** Null if the server decides when it saves. */
export function encryptionText(encryption: SandboxRecord["encryption"]): string | null {
  if (encryption === null) return null;
  const { held_by, key } = encryption;
  return held_by === "client" ? `client key ${key}` : `server key ${key}`;
}
