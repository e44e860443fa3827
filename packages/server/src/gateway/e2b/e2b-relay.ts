import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { ENCRYPTION_KEY_HEADER, isSandboxId, SandboxerError } from "@sandboxer/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import { requestKeysOf } from "../access/encryption-key.ts";
import { proofFor } from "../access/encryption-proof.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import { NOBODY } from "../access/principal.ts";
import { NEVER_RENDERED } from "../console/security-headers.ts";
import { requestOtherServer } from "../relay/other-server-request.ts";
import { ServerWatch } from "../relay/server-watch.ts";
import { E2B_PREFIX, PORT_HEADER, SANDBOX_HEADER } from "./e2b-router.ts";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";

/** Marks a relayed request, which is not relayed again. A client that sends it only harms itself. */
const RELAYED_HEADER = "sandboxer-e2b-relayed";

/** About one connection, or about the sender: its encryption key is for the server that it asked. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  ENCRYPTION_KEY_HEADER,
  "connection",
  "cookie",
  "expect",
  "forwarded",
  "host",
  "keep-alive",
  "origin",
  "proxy-authorization",
  "proxy-connection",
  "set-cookie",
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

interface RelayServices {
  readonly manager: SandboxManager;
  /** Also while the server starts or drains. */
  isKnownDead(instanceId: string): boolean;
  readonly peerSecret: PeerSecret | undefined;
}

/**
 * Passes calls about a sandbox to the server that owns it. E2B's clients know one server only, so every call is passed,
 * with the client's own credentials. Nothing is changed or kept on the way.
 */
export class E2bRelay {
  readonly #services: RelayServices;
  readonly #watch: ServerWatch;

  constructor(services: RelayServices) {
    this.#services = services;
    this.#watch = new ServerWatch((instanceId) => !this.#services.isKnownDead(instanceId));
  }

  /** The reply, once the owner has begun to answer; undefined: this server answers. Runs before the body is read. */
  async pass(request: FastifyRequest, reply: FastifyReply, call: RelayedCall): Promise<FastifyReply | undefined> {
    if (!isSandboxId(call.sandboxId)) return undefined;
    const gone = new AbortController();
    reply.raw.once("close", () => gone.abort());
    await this.#services.manager.untilArrived(call.sandboxId, gone.signal);
    if (request.headers[RELAYED_HEADER] !== undefined) return undefined;
    const owner = await this.#services.manager.ownerElsewhere(call.sandboxId);
    if (owner === undefined) return undefined;
    if (reply.raw.destroyed) throw new SandboxerError("timeout", "The client disconnected.");
    const answer = await this.#send(request.raw, reply, call, owner);
    return (
      reply
        .code(answer.statusCode ?? 502)
        // The protective headers are those of this server.
        .headers({ ...passed(answer.headers), ...NEVER_RENDERED })
        .send(answer)
    );
  }

  async #send(
    raw: IncomingMessage,
    reply: FastifyReply,
    { sandboxId, port, path }: RelayedCall,
    owner: OtherServer,
  ): Promise<IncomingMessage> {
    const url = E2B_PREFIX + path;
    const method = raw.method ?? "GET";
    const target = port === undefined ? {} : { [SANDBOX_HEADER]: sandboxId, [PORT_HEADER]: String(port) };
    const { request, answer } = requestOtherServer(owner, {
      method,
      path: url,
      headers: {
        ...passed(raw.headers),
        ...lengthOf(raw.headers),
        ...this.#services.peerSecret?.relayedHeaders({ method, url }),
        ...proofFor(requestKeysOf(raw, NOBODY), { method, url }),
        ...target,
        [RELAYED_HEADER]: "1",
      },
    });
    reply.raw.once("close", () => request.destroy());
    const onDeath = (): void => void request.destroy(new Error("it was declared dead"));
    request.once("close", this.#watch.add(owner.instanceId, onDeath));
    raw.pipe(request);
    return await answer();
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
