import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { KEY_HEADER } from "@sandboxer/protocol";

/**
 * `never`: the server that gets the call handles it, also if another one owns the sandbox. Servers send it with each
 * relayed call, so that no call is relayed twice. Any other value is the default; earlier clients send `allow`.
 */
const RELAY_HEADER = "sandboxer-relay";
/** The same as a query parameter for reads: a link in a page and a browser's WebSocket have no headers. */
const RELAY_PARAMETER = "relay";

export type RelayWish = "allow" | "never" | undefined;

export function relayWish({ method, headers, url = "" }: IncomingMessage): RelayWish {
  const shown =
    headers[RELAY_HEADER] ?? (method === "GET" ? new URLSearchParams(queryOf(url)).get(RELAY_PARAMETER) : undefined);
  return shown === "allow" || shown === "never" ? shown : undefined;
}

/** The query of a relayed call, without the parameter about relaying: the header decides at the other server. */
export function passedQuery(url = ""): string {
  const query = queryOf(url);
  const parameters = new URLSearchParams(query);
  if (!parameters.has(RELAY_PARAMETER)) return query;
  parameters.delete(RELAY_PARAMETER);
  return parameters.size === 0 ? "" : `?${parameters.toString()}`;
}

function queryOf(url: string): string {
  const start = url.indexOf("?");
  return start === -1 ? "" : url.slice(start);
}

/**
 * The headers that describe a call. Headers about the sender are not relayed: its page, cookie, proxies and encryption
 * key.
 */
const OF_REQUEST = [
  "accept",
  "content-type",
  "idempotency-key",
  "if-sandbox-epoch",
  "last-event-id",
  "prefer",
  "range",
] as const;

const OF_ANSWER = [
  "accept-ranges",
  "cache-control",
  "content-disposition",
  "content-length",
  "content-range",
  "content-type",
  "etag",
  "preference-applied",
  "retry-after",
] as const;

/** The headers of a relayed call. */
export function passedRequestHeaders(
  headers: IncomingHttpHeaders,
  authorization: string | undefined,
): OutgoingHttpHeaders {
  const chunked = headers["transfer-encoding"] !== undefined;
  return {
    ...picked(headers, OF_REQUEST),
    ...withKey(authorization),
    ...NOT_AGAIN,
    // So that a server that responds before it has read everything still reads the rest.
    connection: "keep-alive",
    // Without either of the two, Node would announce a body that does not come.
    ...(chunked ? { "transfer-encoding": "chunked" } : { "content-length": headers["content-length"] ?? "0" }),
  };
}

export function passedAnswerHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  return picked(headers, OF_ANSWER);
}

/** Sent with every relayed request. */
export const NOT_AGAIN: OutgoingHttpHeaders = { [RELAY_HEADER]: "never" };

/** The other server may read keys from a header with another name. */
export function withKey(authorization: string | undefined): OutgoingHttpHeaders {
  return authorization === undefined ? {} : { authorization, [KEY_HEADER]: authorization };
}

function picked(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string | string[]> {
  const entries = names.flatMap((name) => {
    const value = headers[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(entries);
}
