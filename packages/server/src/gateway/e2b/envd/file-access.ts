import { setImmediate } from "node:timers/promises";
import type { FastifyRequest } from "fastify";
import { E2bError } from "../errors.ts";
import type { E2bServices } from "../e2b-services.ts";
import { isExpired, isSignedWith, type SignedFile } from "./signature.ts";
import { userNamed } from "./users.ts";

export interface FileQuery {
  readonly path?: string;
  readonly username?: string;
  readonly signature?: string;
  readonly signature_expiration?: string;
}

/** Sandboxes whose tokens are tried for a signed URL that names none, and how many at a time. */
const MAX_TRIED = 100_000;
const TRIED_AT_ONCE = 500;

export interface AllowedFile {
  readonly sandboxId: string;
  readonly user: string | undefined;
}

/** Access to `/files`: for callers with the sandbox's token, or with a URL that was signed with it. */
export class FileAccess {
  readonly #services: E2bServices;

  constructor(services: E2bServices) {
    this.#services = services;
  }

  async allow(request: FastifyRequest<{ Querystring: FileQuery }>, operation: "read" | "write"): Promise<AllowedFile> {
    const query = checkedQuery(request.query);
    const { sandboxId } = request.e2bTarget ?? {};
    const user = userNamed(query.username);
    const { signature } = query;
    if (signature === undefined) {
      if (sandboxId === undefined) throw new E2bError(401, "missing signature query parameter");
      if (request.headers["x-access-token"] === undefined) throw new E2bError(401, "missing signature query parameter");
      this.#services.requireToken("envd", sandboxId, request);
      return { sandboxId, user };
    }
    const file: SignedFile = {
      path: query.path ?? "",
      operation,
      user: query.username ?? "",
      expiration: query.signature_expiration,
    };
    const isOf = (id: string): boolean =>
      this.#services.tokens.all("envd", id).some((token) => isSignedWith(file, signature, token));
    const signed =
      sandboxId === undefined
        ? await this.#services.guess(request.raw, () => this.#firstOf(isOf))
        : [sandboxId].find(isOf);
    if (signed === undefined) throw new E2bError(401, "invalid signature");
    if (isExpired(file, Date.now())) throw new E2bError(401, "signature is already expired");
    return { sandboxId: signed, user };
  }

  async #firstOf(isOf: (sandboxId: string) => boolean): Promise<string | undefined> {
    const ids = [...(await this.#services.manager.ids())].slice(0, MAX_TRIED);
    for (let at = 0; at < ids.length; at += TRIED_AT_ONCE) {
      const found = ids.slice(at, at + TRIED_AT_ONCE).find(isOf);
      if (found !== undefined) return found;
      // Other requests take their turn.
      await setImmediate();
    }
    return undefined;
  }
}

/** A parameter that is given twice is a list. */
function checkedQuery(query: FileQuery): FileQuery {
  for (const name of ["path", "username", "signature", "signature_expiration"] as const) {
    if (Array.isArray(query[name])) throw new E2bError(400, `The query has ${name} twice.`);
  }
  return query;
}
