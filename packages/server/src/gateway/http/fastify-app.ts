import { METHODS } from "node:http";
import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { serializerCompiler, validatorCompiler } from "fastify-type-provider-zod";
import { NEVER_RENDERED } from "../console/security-headers.ts";
import { sendError } from "./error-body.ts";
import { discardRefusedBodies } from "./refused-bodies.ts";

const MAX_JSON_BYTES = 8 * 1024 * 1024;

const MAX_PARAMETER_LENGTH = 256;

/** Methods that programs inside may use, besides those that Fastify knows. */
const MORE_METHODS = METHODS.filter((method) => method !== "CONNECT" && method !== "QUERY");

/** A Fastify with the settings that all routes of the server share. */
export function fastifyApp(
  options: Pick<FastifyServerOptions, "clientErrorHandler" | "rewriteUrl" | "serverFactory"> = {},
): FastifyInstance {
  const app = Fastify({
    ...options,
    logger: false,
    bodyLimit: MAX_JSON_BYTES,
    forceCloseConnections: true,
    // Routes load their code. On a busy machine that is slow, and no reason to give up.
    pluginTimeout: 0,
    // Otherwise a HEAD would do everything that its GET does, and follow events or output that nobody reads.
    exposeHeadRoutes: false,
    // Set here and not later, because Fastify would load its own compilers first. Its types know only those.
    schemaController: {
      compilersFactory: {
        buildValidator: () => validatorCompiler as never,
        buildSerializer: () => serializerCompiler as never,
      },
    },
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    // A path that cannot be decoded, or has a part that is too long.
    frameworkErrors: (error, _request, reply) => void sendError(error, reply.headers(NEVER_RENDERED)),
  });
  for (const method of MORE_METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method, { hasBody: true });
  }
  // Many responses contain data from sandboxes. The console, which is rendered, sets its own headers.
  app.addHook("onRequest", async (_request, reply) => void reply.headers(NEVER_RENDERED));
  discardRefusedBodies(app);
  return app;
}
