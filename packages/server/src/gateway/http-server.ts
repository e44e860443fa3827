import { isSandboxId, SandboxerError } from "@sandboxer/protocol";
import Fastify, { type FastifyInstance } from "fastify";
import type { Registry } from "prom-client";
import { registerApi, type ApiOptions } from "./http/api.ts";
import { errorAnswer } from "./http/error-body.ts";

export interface Readiness {
  readonly ready: boolean;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface HttpServerOptions extends ApiOptions {
  readonly readiness: () => Promise<Readiness>;
  readonly metrics: () => Registry;
  /** Another server of the store says that this one is asked for a sandbox. */
  readonly onRing: (sandboxId: string) => void;
}

const MAX_JSON_BYTES = 8 * 1024 * 1024;

/** The HTTP side: whether the server lives, whether it can work, its numbers, and the interface for programs. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: MAX_JSON_BYTES,
    forceCloseConnections: true,
    // Else a HEAD would do all that its GET does, and follow events or output that nobody reads.
    exposeHeadRoutes: false,
  });
  app.get("/healthz", { exposeHeadRoute: true }, () => ({ status: "ok" }));
  app.get("/readyz", { exposeHeadRoute: true }, async (_request, reply) => {
    const { ready, details } = await options.readiness();
    return reply.code(ready ? 200 : 503).send({ status: ready ? "ready" : "not ready", ...details });
  });
  app.get("/metrics", async (_request, reply) => {
    return reply.type(options.metrics().contentType).send(await options.metrics().metrics());
  });
  // Without a key, because whoever rings may know none: it only brings forward a look that is due anyway.
  app.post<{ Params: { id: string } }>("/internal/ring/:id", async (request, reply) => {
    if (isSandboxId(request.params.id)) options.onRing(request.params.id);
    return reply.code(204).send();
  });
  void app.register(async (scope) => registerApi(scope, options));
  app.setNotFoundHandler((request, reply) => {
    const unknown = new SandboxerError(
      "not_found",
      `There is nothing at ${request.method} ${request.url.slice(0, 200)}.`,
    );
    const { status, body } = errorAnswer(unknown);
    return reply.code(status).send(body);
  });
  return app;
}
