import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

export interface AccessRules {
  /** Empty: whoever reaches the server is trusted, and it listens on loopback only. */
  readonly apiKeys: readonly string[];
}

/** Whether a request carries a key of the server, or the server has none. Takes the same time for every key. */
export function isTrusted(request: IncomingMessage, rules: AccessRules): boolean {
  if (rules.apiKeys.length === 0) return true;
  const header = request.headers.authorization ?? "";
  const shown = digest(/^Bearer\s+(.+)$/i.exec(header)?.[1] ?? headerText(request.headers["x-api-key"]));
  return rules.apiKeys.map((key) => timingSafeEqual(digest(key), shown)).includes(true);
}

/**
 * Why a browser's request is refused, if it is. A page from anywhere can make a browser talk to a loopback server; it
 * shows in the Origin, and in the Host when a name was made to point here.
 */
export function browserRefusal(request: IncomingMessage, rules: AccessRules): string | undefined {
  const host = hostName(request.headers.host);
  if (rules.apiKeys.length === 0 && !isLoopbackName(host)) return `The host ${host} is not this machine's loopback.`;
  const { origin } = request.headers;
  if (origin === undefined) return undefined;
  const allowed = URL.canParse(origin) && new URL(origin).host === request.headers.host;
  return allowed ? undefined : "Pages of other origins may not use this server.";
}

function hostName(host: string | undefined): string {
  const url = `http://${host ?? ""}`;
  return URL.canParse(url) ? new URL(url).hostname : "";
}

function isLoopbackName(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

function headerText(value: string | string[] | undefined): string {
  return Array.isArray(value) ? (value[0] ?? "") : (value ?? "");
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
