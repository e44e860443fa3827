import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { ROUTES, SandboxerError, operationRecordSchema } from "@sandboxer/protocol";
import type { Route, RouteName, StreamOf } from "@sandboxer/protocol";
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import type { BeginCall } from "./begin-call.ts";
import type { HttpRelay } from "../relay/http-relay.ts";
import { type Caller, type Service, StreamAnswer, type Call } from "./handler.ts";
import { requestKeysOf } from "../access/encryption-key.ts";
import { isPlaceable } from "./placement.ts";
import { replayed, shortBody } from "../relay/passed-body.ts";

const TABLE = Object.entries(ROUTES) as [RouteName, Route][];

export interface RegisterOptions {
  /** Undefined until the server is ready. */
  readonly service: () => Service | undefined;
  /** Identifies the caller; throws if the call is not allowed. */
  readonly authorize: (request: IncomingMessage, name: RouteName) => Caller;
  readonly relay: HttpRelay;
  readonly begin: BeginCall;
  /** Called for responses that may last long; `sendAway` ends them. */
  readonly onStream: (caller: Caller, body: Readable, sendAway: (error: SandboxerError) => void) => void;
}

/**
 * Registers every route of the table. The steps of a call, in this order:
 *
 * 1. `authorize`, before the body is read: an unauthorized caller sends nothing.
 * 2. `relay`: the server that owns the sandbox handles the call, unless the client forbids that. Otherwise:
 * 3. The route's schemas check path, query and body.
 * 4. `readCall` reads the headers.
 * 5. `begin`: a repeated Idempotency-Key gets the first result; otherwise the operation opens, the handler runs, the
 *    operation ends, and the audit log gets its line.
 * 6. The response: the operation (respond-async), a stream, or JSON.
 */
export function registerRoutes(app: FastifyInstance, options: RegisterOptions): void {
  for (const [name, route] of TABLE) {
    app.route({
      ...describedRoute(name, route),
      onRequest: async (request, reply) => {
        request.caller = options.authorize(request.raw, name);
        const sent = await passOn(options, name, request, reply);
        if (sent === undefined && isPlaceable(name, request.raw)) request.replayedBody ??= await shortBody(request.raw);
        return sent;
      },
      preParsing: async ({ replayedBody }, _reply, payload) =>
        replayedBody === undefined ? payload : replayed(replayedBody),
      handler: (request, reply) => answer(options, name, request, reply),
    });
  }
}

/** Registers routes that are only described, not served. */
export function documentRoutes(app: FastifyInstance): void {
  for (const [name, route] of TABLE) app.route({ ...describedRoute(name, route), handler: () => undefined });
}

function describedRoute(name: RouteName, route: Route) {
  const url = route.path.replaceAll(/\{(\w+)\}/g, ":$1");
  return { method: route.method, url, schema: routeSchema(name, route) };
}

/** A reply that was sent ends the processing of the call. */
async function passOn(
  options: RegisterOptions,
  name: RouteName,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  const service = options.service();
  const relayed = service === undefined ? undefined : await options.relay.pass(service, name, request, reply);
  if (relayed === undefined) return undefined;
  const { status, headers, body } = relayed;
  if (!Buffer.isBuffer(body)) options.onStream(request.caller, body, (error) => body.destroy(error));
  return reply.code(status).headers(headers).send(body);
}

async function answer(
  options: RegisterOptions,
  name: RouteName,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const service = options.service();
  if (service === undefined) throw new SandboxerError("starting", "The server is starting.");
  const gone = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) gone.abort(new SandboxerError("timeout", "The client disconnected."));
  });
  const { operation, result: answered } = await options.begin(service, name, readCall(name, request, gone.signal));
  if (operation !== undefined && wantsNoWait(request)) {
    // The operation's record has the result.
    answered.catch(() => {});
    service.storedOperations?.keep(operation, request.caller).catch(service.onRecordFailure);
    return reply.code(202).header("preference-applied", "respond-async").send(operation.recordFor(request.caller.id));
  }
  const result = await answered;
  const { status } = ROUTES[name];
  if (result instanceof StreamAnswer) {
    options.onStream(request.caller, result.body, (error) => {
      // With an error, so that the client sees an aborted response and not a complete one.
      result.body.destroy(error);
      gone.abort(error);
    });
    return reply.code(status).headers(result.headers).type(result.contentType).send(result.body);
  }
  return status === 204 ? reply.code(204).send() : reply.code(status).send(result);
}

declare module "fastify" {
  interface FastifyRequest {
    caller: Caller;
    /** The body, if it was read before this server began to handle the call. */
    replayedBody: Buffer | undefined;
  }
}

/** For validation, and for the OpenAPI document. */
function routeSchema(name: RouteName, route: Route): FastifySchema {
  const { params, query, body, response, summary, tag, status } = route;
  return {
    operationId: name,
    summary,
    tags: [tag],
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { querystring: query }),
    ...(body === undefined || isStream(body) ? {} : { body: optionalBody(body) }),
    response: {
      [status]: response === undefined || isStream(response) ? z.any() : response,
      ...(route.operation === undefined ? {} : { 202: operationRecordSchema }),
    },
  };
}

/**
 * A request without a body is valid if everything in it is optional. Checked at the first such request: the first use of
 * a schema compiles it, and a server that starts would compile all of them.
 */
function optionalBody(body: z.ZodType): z.ZodType {
  return z.preprocess((value) => value ?? (body.safeParse({}).success ? {} : undefined), body);
}

function isStream(body: z.ZodType | StreamOf): body is StreamOf {
  return "stream" in body;
}

/** The checked parts and headers of a request. Throws for an invalid header. */
function readCall(name: RouteName, request: FastifyRequest, signal: AbortSignal): Call<Route> {
  const { raw: message, replayedBody: body } = request;
  return {
    message,
    placeable: isPlaceable(name, message) ? body : undefined,
    params: request.params as never,
    query: request.query as never,
    body: request.body as never,
    stream: request.body as Readable,
    signal,
    caller: request.caller,
    epoch: epochOf(request),
    idempotencyKey: idempotencyKeyOf(request),
    lastEventId: lastEventIdOf(request),
    // A client that disconnects does not end its call: it may ask again with the same key.
    options: { encryption: requestKeysOf(request.raw, request.caller.principal) },
    accepts: (contentType) => (request.headers.accept ?? "").includes(contentType),
  };
}

/** Whether the client wants the operation's record at once instead of the response. */
function wantsNoWait(request: FastifyRequest): boolean {
  const { prefer } = request.headers;
  return (Array.isArray(prefer) ? prefer.join(",") : (prefer ?? "")).includes("respond-async");
}

function epochOf(request: FastifyRequest): number | undefined {
  const header = request.headers["if-sandbox-epoch"];
  if (header === undefined) return undefined;
  if (typeof header === "string" && /^[1-9][0-9]{0,14}$/.test(header)) return Number(header);
  throw new SandboxerError("bad_request", "If-Sandbox-Epoch must be the epoch of the sandbox's record, an integer.");
}

function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const header = request.headers["idempotency-key"];
  if (header === undefined) return undefined;
  if (typeof header === "string" && /^[\x21-\x7e]{1,200}$/.test(header)) return header;
  throw new SandboxerError("bad_request", "Idempotency-Key must be 1 to 200 visible ASCII characters.");
}

function lastEventIdOf({ headers }: FastifyRequest): string | undefined {
  const header = headers["last-event-id"];
  return typeof header === "string" && header !== "" ? header : undefined;
}
