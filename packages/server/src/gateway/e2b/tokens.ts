import { SandboxerError } from "@sandboxer/protocol";
import { isSameSecret } from "../../support/same-secret.ts";
import type { PeerSecret } from "../access/peer-secret.ts";

/** `envd`: for processes and files inside. `traffic`: for the code interpreter and for ports that are not public. */
export type E2bTokenKind = "envd" | "traffic";

/** The header of each kind of token. */
export const TOKEN_HEADERS = { envd: "x-access-token", traffic: "e2b-traffic-access-token" } as const;

/**
 * The access tokens of sandboxes in E2B's dialect. They are made with the secret that the servers of a store share, so
 * that a token stays the same on every server and as long as the sandbox exists, and nothing is stored.
 */
export class E2bTokens {
  readonly #secret: () => PeerSecret | undefined;

  constructor(secret: () => PeerSecret | undefined) {
    this.#secret = secret;
  }

  of(kind: E2bTokenKind, sandboxId: string): string {
    return this.all(kind, sandboxId)[0] ?? "";
  }

  /** Also those that were made with earlier encryption keys of the server. */
  all(kind: E2bTokenKind, sandboxId: string): string[] {
    const secret = this.#secret();
    if (secret === undefined) throw new SandboxerError("starting", "The server is starting.");
    return secret.proofsOf(`e2b ${kind} token of ${sandboxId}`);
  }

  /** `shown`: the value of a header. */
  isToken(kind: E2bTokenKind, sandboxId: string, shown: string | string[] | undefined): boolean {
    return typeof shown === "string" && this.all(kind, sandboxId).some((token) => isSameSecret(shown, token));
  }
}
