/**
 * Joins pieces of a URL with exactly one slash between them. The first is a base such as `https://host/api/`; the
 * others are paths, already encoded.
 */
export function joinUrl(base: string, ...paths: readonly string[]): string {
  const trimmed = paths.map((path) => path.replace(/^\/+|\/+$/g, "")).filter((path) => path !== "");
  return [base.replace(/\/+$/, ""), ...trimmed].join("/");
}

/** Undefined parameters are left out. */
export function withQuery(
  url: string,
  query: Readonly<Record<string, string | number | boolean | undefined>> = {},
): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return pairs.length === 0 ? url : `${url}?${new URLSearchParams(pairs).toString()}`;
}
