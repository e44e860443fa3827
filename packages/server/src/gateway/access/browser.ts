import { SandboxerError } from "@sandboxer/protocol";
import type { Authenticator } from "./authenticator.ts";
import type { AccessRequest } from "./shown-credential.ts";

const BROWSER_HINT = "Open the server at the address that it listens on, and use its own pages.";

export interface WayOptions {
  readonly visits?: boolean;
  readonly onSandboxHost?: boolean;
}

/**
 * Why a request is refused because of its origin, if it is. Any page can make a browser talk to a loopback server; that
 * shows in Origin and Sec-Fetch-Site, and in Host if a name was made to point here. A proxy can bring anyone to a
 * loopback server; that shows in the headers that proxies add. `visits`: whether a link on another site may lead here,
 * as it may to a page. `onSandboxHost`: the request came on a host of a sandbox, whose name was compared before.
 */
export function wayRefusal(
  request: AccessRequest,
  authenticator: Pick<Authenticator, "open" | "shown">,
  { visits = false, onSandboxHost = false }: WayOptions = {},
): SandboxerError | undefined {
  const proxied = proxyRefusal(request, authenticator);
  if (proxied !== undefined) return proxied;
  const refusal = browserRefusal(request, authenticator, { visits, onSandboxHost });
  return refusal === undefined ? undefined : new SandboxerError("permission_denied", refusal, { hint: BROWSER_HINT });
}

/** Why a server without keys refuses a request from an untrusted proxy, if it does. */
export function proxyRefusal(
  { proxyHeader }: AccessRequest,
  { open }: Pick<Authenticator, "open">,
): SandboxerError | undefined {
  if (!open || proxyHeader === undefined) return undefined;
  const message = `The request came through a proxy (header ${proxyHeader}), but this server has no keys.`;
  const hint = "Create a key with `sandboxer keys create`, or start the server with --trusted-proxy ADDRESS.";
  return new SandboxerError("permission_denied", message, { hint });
}

function browserRefusal(
  request: AccessRequest,
  authenticator: Pick<Authenticator, "open" | "shown">,
  { visits, onSandboxHost }: Required<WayOptions>,
): string | undefined {
  const { host, origin } = request.headers;
  const name = hostName(host);
  if (authenticator.open && !onSandboxHost && !isLoopbackName(name))
    return `The host ${name} is not a loopback address of this machine.`;
  const isCrossSite = request.headers["sec-fetch-site"] === "cross-site" && !(visits && isVisit(request));
  if (authenticator.open && isCrossSite) return "Pages from other sites cannot use this server.";
  if (origin === undefined) return cookieRefusal(request, authenticator);
  const allowed = URL.canParse(origin) && new URL(origin).host === host;
  return allowed ? undefined : "Pages from other origins cannot use this server.";
}

/** Whether the address is opened in a tab, so that the linking page sees nothing of it. */
export function isVisit({ method, headers }: AccessRequest): boolean {
  return isRead(method) && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
}

/** Browsers send cookies automatically, so a change with a cookie must come with an Origin. */
function cookieRefusal(request: AccessRequest, authenticator: Pick<Authenticator, "shown">): string | undefined {
  const changesNothing = isRead(request.method) && request.headers.upgrade === undefined;
  if (changesNothing || authenticator.shown(request)?.kind !== "session") return undefined;
  return "A request with a session cookie that changes something must have an Origin header.";
}

function isRead(method: string | undefined): boolean {
  return method === "GET" || method === "HEAD";
}

function hostName(host: string | undefined): string {
  const url = `http://${host ?? ""}`;
  return URL.canParse(url) ? new URL(url).hostname : "";
}

function isLoopbackName(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}
