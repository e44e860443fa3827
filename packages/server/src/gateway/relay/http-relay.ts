import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { asSandboxerError, parseObject, ROUTES, SandboxerError, type Route, type RouteName } from "@sandboxer/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import type { AuditLog } from "../access/audit-log.ts";
import { requestKeysOf } from "../access/encryption-key.ts";
import { proofFor } from "../access/encryption-proof.ts";
import type { Service } from "../http/handler.ts";
import { readText } from "./read-text.ts";
import { allowsRelay, passedAnswerHeaders, passedQuery, passedRequestHeaders } from "./relay-headers.ts";
import { requestOtherServer, type OpenRequest } from "./other-server-request.ts";
import { ServerWatch, type IsAlive } from "./server-watch.ts";

const KEEP_OPERATIONS = 1000;

export interface RelayedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Streamed, unless it is short and was inspected. */
  readonly body: Readable | Buffer;
}

/** Routes that work everywhere, or are about the server that is called. */
const NEVER_RELAYED: ReadonlySet<RouteName> = new Set<RouteName>([
  "getSandbox",
  "destroySandbox",
  "resumeSandbox",
  "createPortLink",
]);

/**
 * Relays calls about a sandbox to the server that owns it, for clients that ask for that: a page can only talk to the
 * server that it came from. Only servers that are alive in the store are called, with the caller's own key, and a
 * relayed call is not relayed again.
 */
export class HttpRelay {
  readonly #audit: AuditLog;
  readonly #watch: ServerWatch;
  readonly #operations = new RelayedOperations();

  constructor(audit: AuditLog, isAlive: IsAlive) {
    this.#audit = audit;
    this.#watch = new ServerWatch(isAlive);
  }

  /**
   * The response of the server that owns the subject of the call; undefined: this server handles it. Runs before the
   * body is read.
   */
  async pass(
    service: Service,
    name: RouteName,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<RelayedAnswer | undefined> {
    if (!allowsRelay(request.raw)) return undefined;
    const server = await this.#target(service, name, request);
    if (server === undefined) return undefined;
    // Nothing would end a request whose client disconnected before it began.
    if (reply.raw.destroyed) throw new SandboxerError("timeout", "The client disconnected.");
    try {
      const relayed = await this.#answer(await this.#passOn(name, request, reply, server), server);
      this.#record(name, request, relayed.status);
      return relayed;
    } catch (error) {
      this.#record(name, request, asSandboxerError(error).row.httpStatus);
      throw error;
    }
  }

  async #target(service: Service, name: RouteName, request: FastifyRequest): Promise<OtherServer | undefined> {
    const { id = "" } = request.params as { readonly id?: string };
    if (name === "getOperation") {
      const instanceId = this.#operations.serverOf(id);
      return instanceId === undefined ? undefined : service.otherServer(instanceId);
    }
    const { path }: Route = ROUTES[name];
    const isRelayed = /^\/v1\/sandboxes\/\{id\}(\/|$)/.test(path) && !NEVER_RELAYED.has(name);
    return isRelayed ? service.ownerElsewhere(id) : undefined;
  }

  async #answer({ answer, failure }: Answered, server: OtherServer): Promise<RelayedAnswer> {
    const status = answer.statusCode ?? 500;
    const headers = passedAnswerHeaders(answer.headers);
    if (status === 401) {
      answer.destroy();
      throw keyNotTaken(server);
    }
    if (status !== 202) return { status, headers, body: answer };
    const text = await readText(answer).catch((error: unknown) => {
      answer.destroy();
      throw failure(error);
    });
    this.#operations.note(text, server.instanceId);
    const body = Buffer.from(text);
    return { status, headers: { ...headers, "content-length": String(body.length) }, body };
  }

  /** Sends the request, and waits for the head of the response. A client that disconnects ends it. */
  async #passOn(
    name: RouteName,
    { raw, params, caller }: FastifyRequest,
    reply: FastifyReply,
    server: OtherServer,
  ): Promise<Answered> {
    const { method } = ROUTES[name];
    const path = pathOf(name, params as Readonly<Record<string, string>>) + passedQuery(raw.url);
    const proof = proofFor(requestKeysOf(raw, caller.principal), { method, url: path });
    const headers = { ...passedRequestHeaders(raw.headers, caller.authorization), ...proof };
    const { request, failure } = requestOtherServer(server, { method, path, headers });
    reply.raw.once("close", () => request.destroy());
    const onDeath = (): void => void request.destroy(new Error("it was declared dead"));
    request.once("close", this.#watch.add(server.instanceId, onDeath));
    const answered = Promise.withResolvers<IncomingMessage>();
    request.once("response", answered.resolve);
    request.once("error", (error) => answered.reject(failure(error)));
    raw.pipe(request);
    return { answer: await answered.promise, failure };
  }

  /** The server that owns the sandbox audits the action; this one audits the caller and its address. */
  #record(name: RouteName, { method, caller, params }: FastifyRequest, status: number): void {
    if (method === "GET") return;
    const outcome = status < 400 ? "ok" : status === 401 || status === 403 || status === 429 ? "refused" : "failed";
    const { id: sandboxId } = params as { readonly id?: string };
    this.#audit.record({ who: caller.principal, what: name, sandboxId, outcome, address: caller.address });
  }
}

interface Answered {
  /** The head of the response is here; the body follows. */
  readonly answer: IncomingMessage;
  readonly failure: OpenRequest["failure"];
}

/** Built from the parsed route, so that nothing else can be requested. */
function pathOf(name: RouteName, params: Readonly<Record<string, string>>): string {
  return ROUTES[name].path.replaceAll(/\{(\w+)\}/g, (_, parameter: string) =>
    encodeURIComponent(params[parameter] ?? ""),
  );
}

/** A 401 would tell a caller whose key this server accepts that it is not logged in. */
function keyNotTaken({ url, instanceId }: OtherServer): SandboxerError {
  return new SandboxerError(
    "permission_denied",
    `The server ${url}, which runs the sandbox, does not accept this key.`,
    {
      hint: "Give all servers that share a store the same keys, or move the sandbox to this server with POST …/resume.",
      details: { url, owner: instanceId },
    },
  );
}

const operationSchema = z.object({ id: z.string().min(1).max(128) });

/** Maps operations that were started through this server to the server that runs them. */
class RelayedOperations {
  /** Oldest first. */
  readonly #servers = new Map<string, string>();

  /** `answer`: the record of the operation from the other server. */
  note(answer: string, instanceId: string): void {
    const id = operationSchema.safeParse(parseObject(answer)).data?.id;
    if (id === undefined) return;
    this.#servers.delete(id);
    this.#servers.set(id, instanceId);
    const [oldest] = this.#servers.keys();
    if (oldest !== undefined && this.#servers.size > KEEP_OPERATIONS) this.#servers.delete(oldest);
  }

  serverOf(operationId: string): string | undefined {
    return this.#servers.get(operationId);
  }
}
