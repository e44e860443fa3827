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

/** Sandboxes whose tokens are tried for a signed URL that names none. */
const MAX_TRIED = 100_000;

export interface AllowedFile {
  readonly sandboxId: string;
  readonly user: string | undefined;
}

/** Who may use `/files`: callers with the sandbox's token, and those with a URL that was signed with it. */
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
    const signed = await this.#sandboxOf(file, signature, sandboxId);
    if (signed === undefined) throw new E2bError(401, "invalid signature");
    if (isExpired(file, Date.now())) throw new E2bError(401, "signature is already expired");
    return { sandboxId: signed, user };
  }

  /** The sandbox whose token signed it; undefined: none. */
  async #sandboxOf(file: SignedFile, signature: string, named: string | undefined): Promise<string | undefined> {
    const isOf = (sandboxId: string): boolean =>
      isSignedWith(file, signature, this.#services.tokens.of("envd", sandboxId));
    if (named !== undefined) return isOf(named) ? named : undefined;
    let tried = 0;
    for (const sandboxId of await this.#services.manager.ids()) {
      if (isOf(sandboxId)) return sandboxId;
      if ((tried += 1) >= MAX_TRIED) return undefined;
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
