import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { isSandboxId, SandboxerError } from "@sandboxer/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import { requestOtherServer } from "../relay/other-server-request.ts";
import { ServerWatch } from "../relay/server-watch.ts";
import { E2B_PREFIX, PORT_HEADER, SANDBOX_HEADER } from "./e2b-router.ts";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";

/** Marks a relayed request, which is not relayed again. A client that sends it only harms itself. */
const RELAYED_HEADER = "sandboxer-e2b-relayed";

/** About one connection, or about the sender. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  "connection",
  "cookie",
  "expect",
  "forwarded",
  "host",
  "keep-alive",
  "origin",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "via",
]);

export interface RelayedCall {
  readonly sandboxId: string;
  /** With the query, below `/e2b`. */
  readonly path: string;
  /** For requests to a sandbox. */
  readonly port?: number;
}

/**
 * Passes calls about a sandbox to the server that owns it. E2B's clients know one server only, so every call is passed,
 * with the client's own credentials. Nothing is changed or kept on the way.
 */
export class E2bRelay {
  readonly #services: { readonly manager: SandboxManager };
  readonly #watch: ServerWatch;

  constructor(services: { readonly manager: SandboxManager }) {
    this.#services = services;
    this.#watch = new ServerWatch(
      async (instanceId) => (await this.#services.manager.otherServer(instanceId)) !== undefined,
    );
  }

  /** The reply, once the owner has begun to answer; undefined: this server answers. Runs before the body is read. */
  async pass(request: FastifyRequest, reply: FastifyReply, call: RelayedCall): Promise<FastifyReply | undefined> {
    if (request.headers[RELAYED_HEADER] !== undefined || !isSandboxId(call.sandboxId)) return undefined;
    const owner = await this.#services.manager.ownerElsewhere(call.sandboxId);
    if (owner === undefined) return undefined;
    if (reply.raw.destroyed) throw new SandboxerError("timeout", "The client disconnected.");
    const answer = await this.#send(request.raw, reply, call, owner);
    return reply
      .code(answer.statusCode ?? 502)
      .headers(passed(answer.headers))
      .send(answer);
  }

  async #send(
    raw: IncomingMessage,
    reply: FastifyReply,
    { sandboxId, port, path }: RelayedCall,
    owner: OtherServer,
  ): Promise<IncomingMessage> {
    const target = port === undefined ? {} : { [SANDBOX_HEADER]: sandboxId, [PORT_HEADER]: String(port) };
    const { request, failure } = requestOtherServer(owner, {
      method: raw.method ?? "GET",
      path: E2B_PREFIX + path,
      headers: { ...passed(raw.headers), ...lengthOf(raw.headers), ...target, [RELAYED_HEADER]: "1" },
    });
    reply.raw.once("close", () => request.destroy());
    const onDeath = (): void => void request.destroy(new Error("it was declared dead"));
    request.once("close", this.#watch.add(owner.instanceId, onDeath));
    const answered = Promise.withResolvers<IncomingMessage>();
    request.once("response", answered.resolve);
    request.once("error", (error) => answered.reject(failure(error)));
    raw.pipe(request);
    return await answered.promise;
  }
}

function passed(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || NOT_PASSED.has(name) || name.startsWith("x-forwarded-") ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}

/** Without either of the two, Node would announce a body that does not come. */
function lengthOf(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  if (headers["transfer-encoding"] !== undefined) return { "transfer-encoding": "chunked" };
  return { "content-length": headers["content-length"] ?? "0" };
}
