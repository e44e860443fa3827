import { createHmac } from "node:crypto";
import { isSameSecret } from "../../support/same-secret.ts";

/** By this header a request shows that it comes from a server of the same store. */
export const PEER_HEADER = "sandboxer-peer";

/** What a server may ask another one: how it is, and to look whether a sandbox of its own is asked for. */
export const INSTANCE = "instance";
export function ringOf(sandboxId: string): string {
  return `ring ${sandboxId}`;
}

/** What the servers of a store share. It is never sent: a request carries a proof, which is good for what it asks alone. */
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
