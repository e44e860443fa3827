import type { FastifyRequest } from "fastify";

const MAX_LOGGED = 200;

/** The client and its version: unknown routes and fields show that E2B's clients have changed. */
export function clientOf({ headers }: Pick<FastifyRequest, "headers">): Record<string, string> {
  const cut = (value: unknown): string => (typeof value === "string" ? value.slice(0, MAX_LOGGED) : "unknown");
  return {
    client: cut(headers["user-agent"]),
    version: cut(headers["package_version"]),
    language: cut(headers["lang"]),
  };
}

/** Without the query, which may contain a signature. */
export function pathOf({ url }: Pick<FastifyRequest, "url">): string {
  return (url.split("?", 1)[0] ?? "").slice(0, MAX_LOGGED);
}
