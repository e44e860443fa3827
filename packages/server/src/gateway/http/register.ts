import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import {
  operationRecordSchema,
  type Route,
  type RouteName,
  ROUTES,
  SandboxerError,
  type StreamOf,
} from "@sandboxer/protocol";
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import type { Operation } from "../../manager/operations/operation.ts";
import { type Call, type Caller, type Handler, type Service, StreamAnswer } from "./handler.ts";

export interface RegisterOptions {
  /** Undefined until the server is ready. */
  readonly service: () => Service | undefined;
  /** Who calls, or a throw. */
  readonly authorize: (request: IncomingMessage, route: Route) => Caller;
  /** Wraps each call: idempotency, audit. */
  readonly around: (name: RouteName, route: Route, call: Call<Route>, begin: () => Begun) => Begun;
  /** Told of answers that may go on for long, which `sendAway` ends. */
  readonly onStream: (caller: Caller, body: Readable, sendAway: (error: SandboxerError) => void) => void;
}

/** A call that is under way. */
export interface Begun {
  /** Its record, for routes that have one; ends with the call. */
  readonly operation: Operation | undefined;
  readonly result: Promise<unknown>;
}

/** Puts every route of the table on the HTTP server. */
export function registerRoutes(app: FastifyInstance, options: RegisterOptions): void {
  for (const [name, route] of Object.entries(ROUTES) as [RouteName, Route][]) {
    app.route({
      method: route.method,
      url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      schema: schemaOf(name, route),
      // Before the body is read: who may not call sends nothing.
      onRequest: async (request) => {
        request.caller = options.authorize(request.raw, route);
      },
      handler: (request, reply) => answer(options, name, route, request, reply),
    });
  }
}

async function answer(
  options: RegisterOptions,
  name: RouteName,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const service = options.service();
  if (service === undefined) throw new SandboxerError("draining", "The server is starting.", { hint: "Try again." });
  const handler = service.handlers[name];
  if (handler === undefined) throw new SandboxerError("not_supported", `This server has no ${name}.`);
  const gone = new AbortController();
  const call = callOf(request, reply, gone);
  // Opened only for what is then carried out: a repeated request has the operation of the first one.
  const begin = (): Begun => {
    const operation = openOperation(service, route, request);
    const begun = operation === undefined ? call : { ...call, options: { operation } };
    return { operation, result: carriedOut(operation, handler, begun) };
  };
  const { operation, result: answered } = options.around(name, route, call, begin);
  if (operation !== undefined && wantsNoWait(request)) {
    // How it ends is in the operation's record.
    answered.catch(() => {});
    return reply.code(202).header("preference-applied", "respond-async").send(operation.recordFor(request.caller.id));
  }
  const result = await answered;
  if (result instanceof StreamAnswer) {
    options.onStream(request.caller, result.body, (error) => {
      // With an error, so that the client sees a cut and no end.
      result.body.destroy(error);
      gone.abort(error);
    });
    return reply.code(route.status).headers(result.headers).type(result.contentType).send(result.body);
  }
  return route.status === 204 ? reply.code(204).send() : reply.code(route.status).send(result);
}

function openOperation(service: Service, route: Route, request: FastifyRequest): Operation | undefined {
  if (route.operation === undefined) return undefined;
  const { id } = (request.params ?? {}) as { id?: string };
  if (id === undefined) return service.openOperation(route.operation, {}, request.caller.id);
  const subject = route.path.startsWith("/v1/snapshots/") ? { snapshotId: id } : { sandboxId: id };
  return service.openOperation(route.operation, subject, request.caller.id);
}

async function carriedOut(
  operation: Operation | undefined,
  handler: Handler<Route>,
  call: Call<Route>,
): Promise<unknown> {
  try {
    const result = await handler(call);
    operation?.finish({ result });
    return result;
  } catch (error) {
    operation?.finish({ error });
    throw error;
  }
}

function wantsNoWait(request: FastifyRequest): boolean {
  const { prefer } = request.headers;
  return (Array.isArray(prefer) ? prefer.join(",") : (prefer ?? "")).includes("respond-async");
}

function callOf(request: FastifyRequest, reply: FastifyReply, gone: AbortController): Call<Route> {
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) gone.abort(new SandboxerError("timeout", "The client has gone away."));
  });
  return {
    params: request.params as never,
    query: request.query as never,
    body: request.body as never,
    stream: request.body as Readable,
    signal: gone.signal,
    caller: request.caller,
    epoch: epochOf(request),
    idempotencyKey: idempotencyKeyOf(request),
    lastEventId: lastEventIdOf(request),
    // A client that goes away ends nothing that it has asked for: it may ask again, with the same key.
    options: {},
    accepts: (contentType) => (request.headers.accept ?? "").includes(contentType),
  };
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

/** For validation, and for the OpenAPI document. */
function schemaOf(name: RouteName, route: Route): FastifySchema {
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

/** A request without a body has none to be wrong, when everything in it is optional. */
function optionalBody(body: z.ZodType): z.ZodType {
  return z.preprocess((value) => value ?? undefined, body);
}

export function isStream(body: z.ZodType | StreamOf): body is StreamOf {
  return "stream" in body;
}

declare module "fastify" {
  interface FastifyRequest {
    caller: Caller;
  }
}
