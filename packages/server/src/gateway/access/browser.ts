import type { Authenticator } from "./authenticator.ts";
import type { AccessRequest } from "./shown-credential.ts";

/**
 * Why a browser's request is refused, if it is. A page from anywhere can make a browser talk to a loopback server; it
 * shows in the Origin, and in the Host when a name was made to point here.
 */
export function browserRefusal(
  request: AccessRequest,
  authenticator: Pick<Authenticator, "open" | "shown">,
): string | undefined {
  const { host, origin } = request.headers;
  const name = hostName(host);
  if (authenticator.open && !isLoopbackName(name)) return `The host ${name} is not this machine's loopback.`;
  if (origin === undefined) return cookieRefusal(request, authenticator);
  const allowed = URL.canParse(origin) && new URL(origin).host === host;
  return allowed ? undefined : "Pages of other origins may not use this server.";
}

/** Browsers send cookies by themselves, so whoever changes something with one must say where they come from. */
function cookieRefusal(request: AccessRequest, authenticator: Pick<Authenticator, "shown">): string | undefined {
  const changesNothing = isRead(request.method) && request.headers.upgrade === undefined;
  if (changesNothing || authenticator.shown(request)?.kind !== "session") return undefined;
  return "A request with a session's cookie that changes something must have an Origin.";
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
