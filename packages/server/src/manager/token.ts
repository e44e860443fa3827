import { createHash, timingSafeEqual } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";

/** A client's credentials: a server key gives access to every sandbox, a token to one. */
export interface Credentials {
  readonly token: string | undefined;
  /** A valid server key was given, or the server has none and only listens on this machine. */
  readonly trusted: boolean;
}

/** Checks access before anything is restored, claimed or reported. Takes the same time for every token. */
export function checkAccess(credentials: Credentials, tokenHash: string | null | undefined): void {
  if (credentials.token === undefined) {
    if (credentials.trusted) return;
    throw new SandboxerError("permission_denied", "The sandbox's token or a server key is needed.");
  }
  const shown = createHash("sha256").update(credentials.token).digest();
  const right = tokenHash != null && timingSafeEqual(shown, Buffer.from(tokenHash, "hex"));
  if (!right) throw new SandboxerError("permission_denied", "The token does not belong to this sandbox.");
}
