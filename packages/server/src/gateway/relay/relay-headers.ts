import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { KEY_HEADER } from "@sandboxer/protocol";

/** The header with which a client allows a server that does not own a sandbox to relay its call. */
const RELAY_HEADER = "sandboxer-relay";
/** The same as a query parameter for reads: a download link in a page has no headers. */
const RELAY_PARAMETER = "relay";

export function allowsRelay({ method, headers, url = "" }: IncomingMessage): boolean {
  if (headers[RELAY_HEADER] === "allow") return true;
  return method === "GET" && new URLSearchParams(queryOf(url)).get(RELAY_PARAMETER) === "allow";
}

/** The query of a relayed call, without the permission to relay, so that it is not relayed twice. */
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

/** The headers of a relayed call, without the permission to relay, so that it is not relayed twice. */
export function passedRequestHeaders(
  headers: IncomingHttpHeaders,
  authorization: string | undefined,
): OutgoingHttpHeaders {
  const chunked = headers["transfer-encoding"] !== undefined;
  return {
    ...picked(headers, OF_REQUEST),
    ...withKey(authorization),
    // So that a server that responds before it has read everything still reads the rest.
    connection: "keep-alive",
    // Without either of the two, Node would announce a body that does not come.
    ...(chunked ? { "transfer-encoding": "chunked" } : { "content-length": headers["content-length"] ?? "0" }),
  };
}

export function passedAnswerHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  return picked(headers, OF_ANSWER);
}

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
