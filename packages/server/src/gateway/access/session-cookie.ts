const COOKIE = "sandboxer_session";
/** Over HTTPS: browsers take a cookie with this prefix only from its own host, so that no other host can replace it. */
const SECURE_COOKIE = `__Host-${COOKIE}`;

export const SESSION_COOKIES: readonly string[] = [SECURE_COOKIE, COOKIE];

/** Scripts cannot read it, and pages of other sites cannot send it. */
export function sessionCookie(text: string, maxAgeSeconds: number, secure: boolean): string {
  const attributes = [
    "Path=/",
    "HttpOnly",
    "SameSite=Strict",
    `Max-Age=${maxAgeSeconds}`,
    ...(secure ? ["Secure"] : []),
  ];
  return [`${secure ? SECURE_COOKIE : COOKIE}=${text}`, ...attributes].join("; ");
}

export function readSessionCookie(header: string | undefined): string | undefined {
  return SESSION_COOKIES.flatMap((name) => readCookies(header, name))[0];
}

/** The values of all cookies with this name that are not empty. */
export function readCookies(header: string | undefined, name: string): string[] {
  const pairs = (header ?? "").split(";").map((pair) => pair.trim());
  const values = pairs.flatMap((pair) => (pair.startsWith(`${name}=`) ? [pair.slice(name.length + 1)] : []));
  return values.filter((value) => value !== "");
}
