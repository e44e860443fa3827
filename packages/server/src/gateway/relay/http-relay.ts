import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import {
  asSandboxerError,
  errorBodySchema,
  parseObject,
  ROUTES,
  SandboxerError,
  type RouteName,
} from "@sandboxer/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import type { AuditLog } from "../access/audit-log.ts";
import { requestKeysOf } from "../access/encryption-key.ts";
import { proofFor } from "../access/encryption-proof.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import type { Service } from "../http/handler.ts";
import { Owners } from "./owners.ts";
import { isShort, shortBody } from "./passed-body.ts";
import { readText } from "./read-text.ts";
import { passedAnswerHeaders, passedQuery, passedRequestHeaders, relayWish } from "./relay-headers.ts";
import { isList, relayTarget, type RelayTarget } from "./relay-target.ts";
import { requestOtherServer, type OpenRequest } from "./other-server-request.ts";
import { ServerWatch, type IsAlive } from "./server-watch.ts";

/** How long a call follows a sandbox that moves from server to server. A handoff takes no longer. */
const FOLLOW_MS = 30_000;
const FIRST_LOOK_MS = 25;
const LONGEST_LOOK_MS = 500;

export interface RelayedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Streamed, unless it is short and was inspected. */
  readonly body: Readable | Buffer;
}

export interface HttpRelayOptions {
  readonly audit: AuditLog;
  readonly isAlive: IsAlive;
  readonly peerSecret: () => PeerSecret | undefined;
}

/**
 * Relays calls about a sandbox to the server that owns it, unless the client forbids that: behind a balancer a call
 * arrives anywhere. Only servers that are alive in the store are called, with the caller's own key, and a relayed call
 * is not relayed again. If the sandbox moves meanwhile, the call follows it.
 */
export class HttpRelay {
  readonly #options: HttpRelayOptions;
  readonly #watch: ServerWatch;
  readonly #owners = new Owners();

  constructor(options: HttpRelayOptions) {
    this.#options = options;
    this.#watch = new ServerWatch(options.isAlive);
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
    const target = relayTarget(name, request);
    if (target === undefined) return undefined;
    const gone = new AbortController();
    reply.raw.once("close", () => gone.abort());
    // A list is answered here if the store cannot say who has the rest of it.
    const orHere = (error: unknown): undefined => {
      if (!isList(name)) throw error;
    };
    if ("sandboxId" in target) await service.untilArrived(target.sandboxId, gone.signal).catch(orHere);
    if (relayWish(request.raw) === "never") return undefined;
    const server = await this.#serverOf(service, target, !isShort(request.raw) || isList(name)).catch(orHere);
    if (server === undefined) return undefined;
    // Nothing would end a request whose client disconnected before it began.
    if (reply.raw.destroyed) throw new SandboxerError("timeout", "The client disconnected.");
    try {
      const relayed = await this.#follow(service, { name, request, reply, target }, server, gone.signal);
      if (relayed !== undefined) this.#record(name, request, relayed.status);
      return relayed;
    } catch (error) {
      this.#record(name, request, asSandboxerError(error).row.httpStatus);
      throw error;
    }
  }

  async #serverOf(service: Service, target: RelayTarget, mustBeSure = false): Promise<OtherServer | undefined> {
    return "sandboxId" in target
      ? this.#owners.find(service, target.sandboxId, mustBeSure)
      : service.otherServer(target.instanceId);
  }

  /** Sends the call to the owner, and again to the next one if the sandbox has left that server. */
  async #follow(
    service: Service,
    call: RelayedCall,
    first: OtherServer,
    signal: AbortSignal,
  ): Promise<RelayedAnswer | undefined> {
    const { request, target } = call;
    const body = await shortBody(request.raw);
    const endMs = performance.now() + FOLLOW_MS;
    let lookMs = FIRST_LOOK_MS;
    for (let server: OtherServer | undefined = first; ; server = await this.#serverOf(service, target)) {
      if (server === undefined) {
        request.replayedBody = body;
        return undefined;
      }
      const mayFollow = "sandboxId" in target && body !== undefined && performance.now() < endMs && !signal.aborted;
      try {
        const relayed = await this.#answer(await this.#passOn(call, body, server), server, mayFollow);
        if (!(mayFollow && hasMoved(relayed))) return relayed;
        this.#owners.forget(target.sandboxId);
        await delay(lookMs, undefined, { signal }).catch(() => {});
        lookMs = Math.min(lookMs * 2, LONGEST_LOOK_MS);
        await service.untilArrived(target.sandboxId, signal);
      } catch (error) {
        // It may have been the owner a moment ago.
        const { details } = asSandboxerError(error);
        if (!mayFollow || details["reached"] !== false || !this.#owners.forget(target.sandboxId)) throw error;
        const next = await this.#serverOf(service, target);
        if (next?.instanceId === server.instanceId) throw error;
      }
    }
  }

  /** With `inspect`, a refusal is read, because it may say that the sandbox has moved. */
  async #answer({ answer, failure }: Answered, server: OtherServer, inspect: boolean): Promise<RelayedAnswer> {
    const status = answer.statusCode ?? 500;
    const headers = passedAnswerHeaders(answer.headers);
    if (status === 401) {
      answer.destroy();
      throw keyNotTaken(server);
    }
    if (status !== 409 || !inspect) return { status, headers, body: answer };
    const text = await readText(answer).catch((error: unknown) => {
      answer.destroy();
      throw failure(error);
    });
    const body = Buffer.from(text);
    return { status, headers: { ...headers, "content-length": String(body.length) }, body };
  }

  /** Sends the request, and waits for the head of the response. A client that disconnects ends it. */
  async #passOn(
    { name, request, reply }: RelayedCall,
    body: Buffer | undefined,
    server: OtherServer,
  ): Promise<Answered> {
    const { raw, params, caller } = request;
    const { method } = ROUTES[name];
    const path = pathOf(name, params as Readonly<Record<string, string>>) + passedQuery(raw.url);
    const proof = proofFor(requestKeysOf(raw, caller.principal), { method, url: path });
    const counted = this.#options.peerSecret()?.relayedHeaders({ method, url: path });
    const headers = { ...passedRequestHeaders(raw.headers, caller.authorization), ...proof, ...counted };
    const { request: passed, answer, failure } = requestOtherServer(server, { method, path, headers });
    const onGone = (): void => void passed.destroy();
    reply.raw.once("close", onGone);
    const onDeath = (): void => void passed.destroy(new Error("it was declared dead"));
    passed.once("close", this.#watch.add(server.instanceId, onDeath));
    passed.once("close", () => reply.raw.off("close", onGone));
    const answered = answer();
    if (body === undefined) raw.pipe(passed);
    else passed.end(body);
    return { answer: await answered, failure };
  }

  /** The server that owns the sandbox audits the action; this one audits the caller and its address. */
  #record(name: RouteName, { method, caller, params }: FastifyRequest, status: number): void {
    if (method === "GET") return;
    const outcome = status < 400 ? "ok" : status === 401 || status === 403 || status === 429 ? "refused" : "failed";
    const { id: sandboxId } = params as { readonly id?: string };
    this.#options.audit.record({ who: caller.principal, what: name, sandboxId, outcome, address: caller.address });
  }
}

interface RelayedCall {
  readonly name: RouteName;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly target: RelayTarget;
}

interface Answered {
  /** The head of the response is here; the body follows. */
  readonly answer: IncomingMessage;
  readonly failure: OpenRequest["failure"];
}

/** Whether the server did nothing because the sandbox has left it, or is about to. */
function hasMoved({ status, body }: RelayedAnswer): boolean {
  if (status !== 409 || !Buffer.isBuffer(body)) return false;
  const parsed = errorBodySchema.safeParse(parseObject(body.toString("utf8")));
  if (!parsed.success) return false;
  const { code, details } = parsed.data.error;
  return code === "lease_held" || (code === "wrong_state" && details?.["state"] === "restoring");
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
