/** The authentication that a registry asks for with `401`. */
export type Challenge =
  | { readonly scheme: "basic" }
  | { readonly scheme: "bearer"; readonly realm: string; readonly service?: string; readonly scope?: string };

/** Reads `WWW-Authenticate`; undefined: no scheme that is known. */
export function parseChallenge(header: string | undefined): Challenge | undefined {
  const [, scheme = "", rest = ""] = /^\s*([A-Za-z]+)\s*(.*)$/s.exec(header ?? "") ?? [];
  if (scheme.toLowerCase() === "basic") return { scheme: "basic" };
  if (scheme.toLowerCase() !== "bearer") return undefined;
  const values = new Map<string, string>();
  for (const [, name = "", quoted, plain] of rest.matchAll(/([A-Za-z_]+)=(?:"([^"]*)"|([^\s,]+))/g)) {
    values.set(name.toLowerCase(), quoted ?? plain ?? "");
  }
  const [realm, service, scope] = [values.get("realm"), values.get("service"), values.get("scope")];
  if (realm === undefined || !URL.canParse(realm)) return undefined;
  return {
    scheme: "bearer",
    realm,
    ...(service === undefined ? {} : { service }),
    ...(scope === undefined ? {} : { scope }),
  };
}
