import type { Scope } from "@sandboxer/protocol";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { E2bCaller, E2bServices } from "../e2b-services.ts";
import { E2bError } from "../errors.ts";
import { clientOf } from "../e2b-client.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** For the control plane of E2B's dialect. */
    e2bCaller: E2bCaller | undefined;
  }
}

export interface ControlCall {
  readonly services: E2bServices;
  readonly caller: E2bCaller;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** The sandbox of the path; empty: there is none. */
  readonly sandboxId: string;
  /** The checked body. Fields that the schema does not know are logged. */
  readonly body: <Schema extends z.ZodObject>(schema: Schema) => z.infer<Schema>;
  readonly query: <Schema extends z.ZodObject>(schema: Schema) => z.infer<Schema>;
}

export interface ControlRoute {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `:sandboxID` is the sandbox that the call is about. */
  readonly url: string;
  readonly scope: Scope;
  /** For the audit log: the name of our own route that does the same. */
  readonly what: string;
  /** Not passed on to the server that owns the sandbox. */
  readonly everywhere?: boolean;
}

/**
 * Adds a call of the control plane. Its steps: the caller is identified and authorized, before the body is read; the
 * server that owns the sandbox answers, if that is another one; the handler runs and sends the answer.
 */
export function controlRoute(
  app: FastifyInstance,
  services: E2bServices,
  route: ControlRoute,
  handler: (call: ControlCall) => Promise<FastifyReply>,
): void {
  app.route({
    method: route.method,
    url: route.url,
    onRequest: async (request, reply) => {
      request.e2bCaller = services.authorize(request.raw, route.scope, route.what);
      const { sandboxID: sandboxId } = request.params as { readonly sandboxID?: string };
      if (sandboxId === undefined || route.everywhere === true) return undefined;
      const path = request.url.slice(app.prefix.length);
      return services.relay.pass(request, reply, { sandboxId, path });
    },
    handler: (request, reply) => {
      const caller = request.e2bCaller;
      if (caller === undefined) throw new E2bError(401, "A valid API key is needed.");
      const { sandboxID: sandboxId = "" } = request.params as { readonly sandboxID?: string };
      return handler({
        services,
        caller,
        request,
        reply,
        sandboxId,
        body: (schema) => checked(services, request, schema, request.body ?? {}, "body"),
        query: (schema) => checked(services, request, schema, request.query, "query"),
      });
    },
  });
}

function checked<Schema extends z.ZodObject>(
  { log }: E2bServices,
  request: FastifyRequest,
  schema: Schema,
  given: unknown,
  where: string,
): z.infer<Schema> {
  const { data, error } = schema.safeParse(given);
  if (error !== undefined) {
    const problems = error.issues.map(({ path, message }) => [path.join("."), message].filter(Boolean).join(": "));
    throw new E2bError(400, `The ${where} is not valid: ${problems.join("; ").slice(0, 1000)}`);
  }
  const unknown = Object.keys(given as object).filter((name) => !(name in schema.shape));
  if (unknown.length > 0) {
    const fields = unknown.slice(0, 20).map((name) => name.slice(0, 100));
    log.warn({ ...clientOf(request), route: request.routeOptions.url, fields }, "unknown fields of E2B");
  }
  return data;
}
