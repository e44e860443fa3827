import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { carriesKey } from "../access/shown-credential.ts";
import { cookieFromInside, cookiesForInside } from "./preview-cookies.ts";

/** They are about one connection, and each side of a proxy has its own. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Replaced by what this server knows, or meant for it. */
const ABOUT_THE_WAY: ReadonlySet<string> = new Set(["cookie", "expect", "forwarded", "via"]);

/**
 * Headers of a program inside that would have an effect beyond its own host: on the cookies of all hosts of the site,
 * or on how browsers reach this server.
 */
const BEYOND_THE_HOST: ReadonlySet<string> = new Set([
  "alt-svc",
  "clear-site-data",
  "origin-agent-cluster",
  "public-key-pins",
  "set-cookie",
  "strict-transport-security",
]);

export interface Forwarded {
  /** The `Host` for the program. */
  readonly host: string;
  /** The host that the client asked for. */
  readonly askedHost: string;
  readonly protocol: "http" | "https";
  readonly clientAddress: string | undefined;
  /** The part of the client's path that the program does not see. */
  readonly prefix?: string;
  /** Headers that hold a credential for this server. */
  readonly credentials: ReadonlySet<string>;
  /** On the API's own origin no cookie is passed. */
  readonly cookies: boolean;
}

/** The headers of a request for the program inside: without anything that was meant for this server. */
export function requestHeaders(headers: IncomingHttpHeaders, forwarded: Forwarded): OutgoingHttpHeaders {
  const named = connectionNames(headers.connection);
  const passed = Object.entries(headers).filter(
    ([name]) =>
      !HOP_BY_HOP.has(name) &&
      !named.has(name) &&
      !ABOUT_THE_WAY.has(name) &&
      !name.startsWith("sandboxer-") &&
      !name.startsWith("x-forwarded-") &&
      !forwarded.credentials.has(name),
  );
  const cookie = forwarded.cookies ? cookiesForInside(headers.cookie) : undefined;
  const protocols = subprotocols(headers["sec-websocket-protocol"]);
  const { "sec-websocket-protocol": _offers, ...rest } = Object.fromEntries(passed);
  return {
    ...rest,
    ...(cookie === undefined ? {} : { cookie }),
    ...(protocols === undefined ? {} : { "sec-websocket-protocol": protocols }),
    host: forwarded.host,
    "x-forwarded-host": forwarded.askedHost,
    "x-forwarded-proto": forwarded.protocol,
    ...(forwarded.clientAddress === undefined ? {} : { "x-forwarded-for": forwarded.clientAddress }),
    ...(forwarded.prefix === undefined ? {} : { "x-forwarded-prefix": forwarded.prefix }),
    // A body of unknown length; without this, Node would not send the body of a GET.
    ...(headers["transfer-encoding"] === undefined ? {} : { "transfer-encoding": "chunked" }),
  };
}

/** The headers of a response on the preview's own host. `isPrivate`: caches that several people share must not keep it. */
export function responseHeaders(answer: IncomingMessage, isPrivate: boolean): Record<string, string[]> {
  const headers = passedFromInside(answer);
  const cookies = (answer.headers["set-cookie"] ?? []).flatMap((header) => cookieFromInside(header) ?? []);
  if (cookies.length > 0) headers["set-cookie"] = cookies;
  if (isPrivate) headers["cache-control"] = [privately(answer.headers["cache-control"])];
  // No page may share a process or its `document.domain` with other hosts of the site.
  headers["origin-agent-cluster"] = ["?1"];
  return headers;
}

/** As {@link responseHeaders}, on the API's own origin: no cookie, no permission for pages, and nothing to render. */
export function apiResponseHeaders(
  answer: IncomingMessage,
  neverRendered: Readonly<Record<string, string>>,
  prefix: string,
): Record<string, string[]> {
  const headers = Object.fromEntries(
    Object.entries(passedFromInside(answer)).filter(
      ([name]) => !name.startsWith("access-control-") && !(name in neverRendered) && name !== "service-worker-allowed",
    ),
  );
  const location = answer.headers.location;
  if (location?.startsWith("/") === true && !location.startsWith("//")) headers["location"] = [prefix + location];
  for (const [name, value] of Object.entries(neverRendered)) headers[name] = [value];
  return headers;
}

function passedFromInside({ headers, headersDistinct }: IncomingMessage): Record<string, string[]> {
  const named = connectionNames(headers.connection);
  const passed = Object.entries(headersDistinct).flatMap(([name, values]) =>
    values === undefined || HOP_BY_HOP.has(name) || named.has(name) || BEYOND_THE_HOST.has(name)
      ? []
      : [[name, values] as const],
  );
  return Object.fromEntries(passed);
}

/** `Connection` may name further headers of its hop, but not the length of a body: Node would send it without an end. */
function connectionNames(header: string | undefined): ReadonlySet<string> {
  const names = (header ?? "").split(",").map((name) => name.trim().toLowerCase());
  return new Set(names.filter((name) => name !== "content-length"));
}

function subprotocols(header: string | undefined): string | undefined {
  const offers = (header ?? "").split(",").map((offer) => offer.trim());
  const passed = offers.filter((offer) => offer !== "" && !carriesKey(offer));
  return passed.length === 0 ? undefined : passed.join(", ");
}

function privately(header: string | undefined): string {
  const directives = (header ?? "").split(",").map((directive) => directive.trim());
  const kept = directives.filter((directive) => directive !== "" && !/^(public|private|s-maxage=)/i.test(directive));
  return ["private", ...kept].join(", ");
}
