import type { FastifyRequest } from "fastify";
import { E2bError } from "../errors.ts";

/** The name of E2B's default user, which is the sandbox's own user here. */
const DEFAULT_USER = "user";

/** The user of a call, from `Authorization: Basic`; undefined: the sandbox's own. */
export function userOfCall({ headers }: Pick<FastifyRequest, "headers">): string | undefined {
  const { authorization } = headers;
  if (authorization === undefined) return undefined;
  const [scheme = "", credentials = ""] = authorization.split(" ", 2);
  if (scheme.toLowerCase() !== "basic") return undefined;
  const [name = ""] = Buffer.from(credentials, "base64").toString("utf8").split(":", 1);
  return userNamed(name);
}

/** Undefined: the sandbox's own. */
export function userNamed(name: string | undefined): string | undefined {
  if (name === undefined || name === "" || name === DEFAULT_USER) return undefined;
  // Numbers and groups are not names of users.
  if (!/^[a-z_][\w.-]{0,63}$/i.test(name)) throw new E2bError(401, "The user name is invalid.");
  return name;
}
