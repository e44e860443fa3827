import type { FastifyRequest } from "fastify";
import type { UserFiles } from "../../../manager/files/user-files.ts";
import type { Sandbox } from "../../../manager/sandbox.ts";
import type { E2bServices } from "../e2b-services.ts";
import { userOfCall } from "./users.ts";

const DEFAULT_KEEP_ALIVE_S = 90;
const MAX_KEEP_ALIVE_S = 600;

export interface FilesOfCall {
  readonly sandbox: Sandbox;
  readonly files: UserFiles;
  /** For programs; undefined: the sandbox's own user. */
  readonly user: string | undefined;
}

/** The sandbox and the user of a request to envd, whose token was checked before. */
export class EnvdCalls {
  readonly #services: E2bServices;

  constructor(services: E2bServices) {
    this.#services = services;
  }

  async sandboxOf(request: FastifyRequest): Promise<Sandbox> {
    const sandbox = await this.#services.running(request.e2bTarget?.sandboxId ?? "");
    this.#services.manager.touch(sandbox);
    return sandbox;
  }

  /** Throws if the sandbox does not have the user. */
  async filesOf(request: FastifyRequest, user = userOfCall(request)): Promise<FilesOfCall> {
    const sandbox = await this.sandboxOf(request);
    const files = await this.#services.manager.files.ofUser(sandbox, user);
    return { sandbox, files, user };
  }

  /** The longest silence of a stream. */
  keepAliveMs({ headers }: FastifyRequest): number {
    const given = Number(headers["keepalive-ping-interval"] ?? DEFAULT_KEEP_ALIVE_S);
    return (given >= 1 ? Math.min(given, MAX_KEEP_ALIVE_S) : DEFAULT_KEEP_ALIVE_S) * 1000;
  }
}
