import { createHmac } from "node:crypto";
import { isSameSecret } from "../../support/same-secret.ts";

/** The header with which a server of the same store authenticates a request. */
export const PEER_HEADER = "sandboxer-peer";

/** Requests between servers: a status, and a hint that one of its sandboxes is requested. */
export const INSTANCE = "instance";
export function ringOf(sandboxId: string): string {
  return `ring ${sandboxId}`;
}

/**
 * The shared secret of the servers of a store. It is never sent: a request carries a proof that is valid for that
 * request only.
 */
export class PeerSecret {
  readonly #secret: Buffer;

  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  proofOf(what: string): string {
    return createHmac("sha256", this.#secret).update(what).digest("hex");
  }

  isProof(shown: string | string[] | undefined, what: string): boolean {
    return isSameSecret(String(shown), this.proofOf(what));
  }
}
