import type { IncomingHttpHeaders } from "node:http";
import { KEY_HEADER } from "@sandboxer/protocol";
import { parseKey } from "./key-text.ts";
import { readSessionCookie } from "./session-cookie.ts";

/** The facts of a request; a Node or fastify request has these fields. */
export interface AccessRequest {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** The address of the socket's peer, or the one that a trusted proxy reports. Other proxies are not trusted. */
  readonly remoteAddress?: string | undefined;
  /** A header that shows that the request came through an untrusted proxy. */
  readonly proxyHeader?: string | undefined;
  /** The client uses HTTPS, to this server or as a trusted proxy says. */
  readonly isSecure?: boolean;
  /** Another server of the store relays it, and has counted it. */
  readonly isRelayed?: boolean;
}

export interface ShownCredential {
  readonly kind: "key" | "session";
  readonly text: string;
}

/** The WebSocket subprotocol of sandboxer; the server responds with it. */
export const SUBPROTOCOL = "sandboxer.v1";
/** Followed by the key in base64url: browsers cannot set headers on a WebSocket, but they can set subprotocols. */
const BEARER_SUBPROTOCOL = "sandboxer.bearer.";

/** Followed by the encryption key of the client, in base64url. */
const ENCRYPTION_SUBPROTOCOL = "sandboxer.encryption-key.";

/** Whether an offered subprotocol is not a name but carries a key. */
export function carriesKey(offer: string): boolean {
  return offer.startsWith(BEARER_SUBPROTOCOL) || offer.startsWith(ENCRYPTION_SUBPROTOCOL);
}

/** The encryption key that a WebSocket is opened with; undefined: none. */
export function subprotocolEncryptionKey(header: string | undefined): string | undefined {
  const offers = header?.split(",").map((offer) => offer.trim());
  return offers?.find((offer) => offer.startsWith(ENCRYPTION_SUBPROTOCOL))?.slice(ENCRYPTION_SUBPROTOCOL.length);
}

/**
 * The first credential of a request. The others are ignored, so that one response is about one credential. If a header
 * for keys is configured, `Authorization` and `X-Api-Key` belong to a proxy and are ignored.
 */
export function shownCredential({ headers }: AccessRequest, keyHeader?: string): ShownCredential | undefined {
  const key =
    (keyHeader === undefined
      ? (bearerOf(headers.authorization) ?? firstOf(headers["x-api-key"]))
      : withoutScheme(firstOf(headers[keyHeader]))) ??
    withoutScheme(firstOf(headers[KEY_HEADER])) ??
    subprotocolKey(headers["sec-websocket-protocol"]);
  if (key !== undefined) return { kind: "key", text: key };
  const session = readSessionCookie(headers.cookie);
  return session === undefined ? undefined : { kind: "session", text: session };
}

/** Sessions and keys of `sandboxer keys` have 256 random bits; an environment key may be anything. */
export function isGuessable({ kind, text }: ShownCredential): boolean {
  return kind === "key" && parseKey(text) === undefined;
}

function bearerOf(header: string | undefined): string | undefined {
  return /^Bearer\s+(.+)$/i.exec(header ?? "")?.[1]?.trim();
}

/** The configured header may use the scheme, as `Authorization` must. */
function withoutScheme(header: string | undefined): string | undefined {
  return bearerOf(header) ?? header;
}

function firstOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function subprotocolKey(header: string | undefined): string | undefined {
  const offers = header?.split(",").map((offer) => offer.trim());
  const encoded = offers?.find((offer) => offer.startsWith(BEARER_SUBPROTOCOL))?.slice(BEARER_SUBPROTOCOL.length);
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64url").toString("utf8");
}
