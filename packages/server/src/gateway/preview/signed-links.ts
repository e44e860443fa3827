import { SandboxerError } from "@sandboxer/protocol";
import type { PeerSecret } from "../access/peer-secret.ts";
import type { PreviewTarget } from "./preview-address.ts";

/** The query parameter of a signed link. */
export const SIGNATURE_PARAMETER = "sandboxer_signature";

export interface Signature {
  readonly text: string;
  /** When it ends, in seconds since 1970. */
  readonly endsAt: number;
}

/**
 * Signatures that open one port of one sandbox until a time. They are made with the secret that the servers of a store
 * share, so that every server accepts those of the others. Those of a port are withdrawn together: each time a new round
 * of signatures begins, which the sandbox's record counts.
 */
export class SignedLinks {
  readonly #secret: () => PeerSecret | undefined;

  constructor(secret: () => PeerSecret | undefined) {
    this.#secret = secret;
  }

  sign(target: PreviewTarget, endsAt: number, round: number): Signature {
    const secret = this.#secret();
    if (secret === undefined) throw new SandboxerError("starting", "The server is starting.");
    return { text: `${endsAt}.${secret.proofOf(signedText(target, endsAt, round))}`, endsAt };
  }

  /** Undefined if the text is no signature for this port, has ended, or was withdrawn. */
  check(text: string | undefined, target: PreviewTarget, round: number): Signature | undefined {
    const [, seconds = "", proof = ""] = /^(\d{10,11})\.([0-9a-f]{64})$/.exec(text ?? "") ?? [];
    const endsAt = Number(seconds);
    if (text === undefined || proof === "" || endsAt * 1000 <= Date.now()) return undefined;
    return this.#secret()?.isProof(proof, signedText(target, endsAt, round)) === true ? { text, endsAt } : undefined;
  }
}

function signedText({ sandboxId, port }: PreviewTarget, endsAt: number, round: number): string {
  return `preview ${sandboxId} ${port} ${endsAt}${round === 0 ? "" : ` ${round}`}`;
}
