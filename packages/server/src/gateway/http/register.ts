import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { type Route, type RouteName, ROUTES, SandboxerError, type StreamOf } from "@sandboxer/protocol";
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import { type Call, type Caller, type Handler, type Handlers, StreamAnswer } from "./handler.ts";

export interface RegisterOptions {
  /** Undefined until the server is ready. */
  readonly handlers: () => Partial<Handlers> | undefined;
  /** Who calls, or a throw. */
  readonly authorize: (request: IncomingMessage, route: Route) => Caller;
  /** Wraps each call: idempotency, audit. */
  readonly around: (name: RouteName, route: Route, call: Call<Route>, run: () => Promise<unknown>) => Promise<unknown>;
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
  const handlers = options.handlers();
  if (handlers === undefined) throw new SandboxerError("draining", "The server is starting.", { hint: "Try again." });
  const handler = handlers[name] as Handler<Route> | undefined;
  if (handler === undefined) throw new SandboxerError("not_supported", `This server has no ${name}.`);
  const call = callOf(request, reply);
  const result = await options.around(name, route, call, async () => handler(call));
  if (result instanceof StreamAnswer) {
    return reply.code(route.status).headers(result.headers).type(result.contentType).send(result.body);
  }
  return route.status === 204 ? reply.code(204).send() : reply.code(route.status).send(result);
}

function callOf(request: FastifyRequest, reply: FastifyReply): Call<Route> {
  const gone = new AbortController();
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

/** For validation, and for the OpenAPI document. */
function schemaOf(name: RouteName, route: Route): FastifySchema {
  const { params, query, body, response, summary, tag, status } = route;
  return {
    ...{ operationId: name, summary, tags: [tag] },
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { querystring: query }),
    ...(body === undefined || isStream(body) ? {} : { body: optionalBody(body) }),
    response: { [status]: response === undefined || isStream(response) ? z.any() : response },
  } as FastifySchema;
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
