import { readCookies, SESSION_COOKIES } from "../access/session-cookie.ts";
import type { Signature } from "./signed-links.ts";

/** Holds the signature of a link, on the preview's own host only. */
const PREVIEW_COOKIE = "sandboxer_preview";
/** Never sent inside, and never set from there. */
const OURS: ReadonlySet<string> = new Set([PREVIEW_COOKIE, ...SESSION_COOKIES]);

/** All of them: a page of another host below the same domain may have set one with this name too. */
export function readPreviewCookies(header: string | undefined): readonly string[] {
  return readCookies(header, PREVIEW_COOKIE);
}

/** Without `Domain`, so that no other host gets it. Scripts cannot read it, and other sites cannot send it. */
export function previewCookie({ text, endsAt }: Signature, secure: boolean): string {
  const seconds = Math.max(0, endsAt - Math.floor(Date.now() / 1000));
  const attributes = ["Path=/", "HttpOnly", "SameSite=Lax", `Max-Age=${seconds}`, ...(secure ? ["Secure"] : [])];
  return [`${PREVIEW_COOKIE}=${text}`, ...attributes].join("; ");
}

/** The cookies of a request for the program inside; undefined: none. */
export function cookiesForInside(header: string | undefined): string | undefined {
  const pairs = (header ?? "").split(";").map((pair) => pair.trim());
  const passed = pairs.filter((pair) => pair !== "" && !OURS.has(nameOf(pair)));
  return passed.length === 0 ? undefined : passed.join("; ");
}

/**
 * A `Set-Cookie` of the program inside, for its own host only: without `Domain`, a page cannot set cookies for its
 * parent domain, which other previews and the console may be below. Undefined: the name is one of ours.
 */
export function cookieFromInside(header: string): string | undefined {
  const [pair = "", ...attributes] = header.split(";");
  if (OURS.has(nameOf(pair.trim()))) return undefined;
  return [pair, ...attributes.filter((attribute) => !/^\s*domain\s*(=|$)/i.test(attribute))].join(";");
}

function nameOf(pair: string): string {
  return (pair.split("=", 1)[0] ?? "").trim();
}
