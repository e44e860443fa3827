import { createHash, timingSafeEqual } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";

/** What a client has shown: a key of the server makes every sandbox accessible, a token one. */
export interface Credentials {
  readonly token: string | undefined;
  /** A valid server key was given, or the server has none and listens to this machine only. */
  readonly trusted: boolean;
}

/** Decides on access before anything is restored, claimed or told to anyone. Takes the same time for every token. */
export function checkAccess(credentials: Credentials, tokenHash: string | null | undefined): void {
  if (credentials.token === undefined) {
    if (credentials.trusted) return;
    throw new SandboxerError("permission_denied", "The sandbox's token or a server key is needed.");
  }
  const shown = createHash("sha256").update(credentials.token).digest();
  const right = tokenHash != null && timingSafeEqual(shown, Buffer.from(tokenHash, "hex"));
  if (!right) throw new SandboxerError("permission_denied", "The token does not belong to this sandbox.");
}
