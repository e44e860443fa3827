const COOKIE = "sandboxer_session";

/** Scripts cannot read it, and pages of other sites cannot send it. */
export function sessionCookie(text: string, maxAgeSeconds: number, secure: boolean): string {
  const attributes = [
    "Path=/",
    "HttpOnly",
    "SameSite=Strict",
    `Max-Age=${maxAgeSeconds}`,
    ...(secure ? ["Secure"] : []),
  ];
  return [`${COOKIE}=${text}`, ...attributes].join("; ");
}

export function readSessionCookie(header: string | undefined): string | undefined {
  const pairs = header?.split(";").map((pair) => pair.trim());
  const text = pairs?.find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1);
  return text === "" ? undefined : text;
}
