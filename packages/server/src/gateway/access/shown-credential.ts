import type { IncomingHttpHeaders } from "node:http";
import { KEY_HEADER } from "@sandboxer/protocol";
import { parseKey } from "./key-text.ts";
import { readSessionCookie } from "./session-cookie.ts";

/** What a request says of itself; a Node or fastify request has these fields. */
export interface AccessRequest {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** Of the peer on the socket, or of whom a trusted proxy says that it asks for. Other proxies are not believed. */
  readonly remoteAddress?: string | undefined;
  /** A header by which it shows that the request came through a proxy that is not trusted. */
  readonly proxyHeader?: string | undefined;
}

export interface ShownCredential {
  readonly kind: "key" | "session";
  readonly text: string;
}

/** The WebSocket subprotocol of sandboxer; the server answers with it. */
export const SUBPROTOCOL = "sandboxer.v1";
/** Followed by the key in base64url: browsers cannot set headers on a WebSocket, but subprotocols. */
const BEARER_SUBPROTOCOL = "sandboxer.bearer.";

/** Followed by the encryption key of the client, in base64url. */
const ENCRYPTION_SUBPROTOCOL = "sandboxer.encryption-key.";

/** Whether an offered subprotocol is no name but carries a key. */
export function carriesKey(offer: string): boolean {
  return offer.startsWith(BEARER_SUBPROTOCOL) || offer.startsWith(ENCRYPTION_SUBPROTOCOL);
}

/** The encryption key that a WebSocket is opened with; undefined: none. */
export function subprotocolEncryptionKey(header: string | undefined): string | undefined {
  const offers = header?.split(",").map((offer) => offer.trim());
  return offers?.find((offer) => offer.startsWith(ENCRYPTION_SUBPROTOCOL))?.slice(ENCRYPTION_SUBPROTOCOL.length);
}

/**
 * The first credential that a request carries. The others are not looked at, so that one answer says of one what it is.
 * Where a header is named for keys, `Authorization` and `X-Api-Key` are a proxy's, and say nothing here.
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

/** Sessions and keys of `sandboxer keys` have 256 random bits; a key of the environment may be anything. */
export function isGuessable({ kind, text }: ShownCredential): boolean {
  return kind === "key" && parseKey(text) === undefined;
}

function bearerOf(header: string | undefined): string | undefined {
  return /^Bearer\s+(.+)$/i.exec(header ?? "")?.[1]?.trim();
}

/** A header of our own may have the scheme, as `Authorization` must. */
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
