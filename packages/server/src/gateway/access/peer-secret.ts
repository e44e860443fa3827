import { createHmac } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { LeftSandbox } from "../../manager/ownership/peers.ts";
import { isSameSecret } from "../../support/same-secret.ts";

/** The header with which a server of the same store authenticates a request. */
export const PEER_HEADER = "sandboxer-peer";

/** Requests between servers: a status, a hint that one of its sandboxes is requested, and a sandbox to resume. */
export const INSTANCE = "instance";
export function offerOf({ sandboxId, epoch, from, reason }: LeftSandbox): string {
  return `offer ${sandboxId} ${epoch} ${from} ${reason}`;
}
export function ringOf(sandboxId: string): string {
  return `ring ${sandboxId}`;
}

/** A server that relays a call proves in this header that it has counted the call. */
export const RELAYED_HEADER = "sandboxer-relayed";
/** Clocks of servers differ, and a call may wait. */
const PROOF_AGE_MS = 5 * 60_000;

/** `originalUrl`: set by Fastify if it leads the request to another route. */
type RoutedMessage = Pick<IncomingMessage, "headers" | "method" | "url"> & { readonly originalUrl?: string };

interface ProvedCall {
  readonly method?: string | undefined;
  /** The path with the query. */
  readonly url?: string | undefined;
}

/**
 * The shared secret of the servers of a store. It is never sent: a request carries a proof that is valid for that
 * request only. With encryption keys a proof needs one of them too, because those are in no store: anyone with access
 * to the store could otherwise open every sandbox.
 */
export class PeerSecret {
  /** The current one first. Proofs with the others are accepted, until their keys are no longer configured. */
  readonly #secrets: readonly Uint8Array[];

  constructor(stored: Uint8Array, keys: readonly { peerKey(stored: Uint8Array): Uint8Array }[] = []) {
    this.#secrets = keys.length === 0 ? [stored] : keys.map((key) => key.peerKey(stored));
  }

  proofOf(what: string): string {
    return this.proofsOf(what)[0] ?? "";
  }

  /** Every proof that is accepted. */
  proofsOf(what: string): string[] {
    return this.#secrets.map((secret) => createHmac("sha256", secret).update(what).digest("hex"));
  }

  isProof(shown: string | string[] | undefined, what: string): boolean {
    return this.proofsOf(what).some((proof) => isSameSecret(String(shown), proof));
  }

  relayedHeaders(call: ProvedCall): Record<string, string> {
    const nowMs = Date.now();
    return { [RELAYED_HEADER]: `${nowMs}.${this.proofOf(relayOf(call, nowMs))}` };
  }

  /** Whether another server of the store relays this call. Clients that invent the header gain nothing. */
  isRelayed({ headers, method, url, originalUrl }: RoutedMessage): boolean {
    const [, ms = "", proof = ""] = /^(\d{13})\.([0-9a-f]{64})$/.exec(String(headers[RELAYED_HEADER] ?? "")) ?? [];
    if (proof === "" || Math.abs(Date.now() - Number(ms)) > PROOF_AGE_MS) return false;
    return this.isProof(proof, relayOf({ method, url: originalUrl ?? url }, Number(ms)));
  }

  /** Keys for one purpose, and only for these facts: the first one seals, each of them opens. */
  keysFor(purpose: string, ...facts: readonly (string | undefined)[]): readonly Buffer[] {
    const keyed = (key: Uint8Array, text: string): Buffer => createHmac("sha256", key).update(text).digest();
    const keys = this.#secrets.map((secret) => keyed(secret, `key ${purpose}`));
    return facts.length === 0 ? keys : keys.map((key) => keyed(key, JSON.stringify(facts)));
  }
}

function relayOf({ method, url }: ProvedCall, ms: number): string {
  return `relay ${ms} ${method} ${url}`;
}
