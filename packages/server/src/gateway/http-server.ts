import Fastify, { type FastifyInstance } from "fastify";
import type { Registry } from "prom-client";

export interface Readiness {
  readonly ready: boolean;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface HttpServerOptions {
  readonly readiness: () => Promise<Readiness>;
  readonly metrics: () => Registry;
}

/** The plain HTTP side: whether the server lives, whether it can work, and its numbers. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const app = Fastify({ logger: false, bodyLimit: 64 * 1024, forceCloseConnections: true });
  app.get("/healthz", () => ({ status: "ok" }));
  app.get("/readyz", async (_request, reply) => {
    const { ready, details } = await options.readiness();
    return reply.code(ready ? 200 : 503).send({ status: ready ? "ready" : "not ready", ...details });
  });
  app.get("/metrics", async (_request, reply) => {
    return reply.type(options.metrics().contentType).send(await options.metrics().metrics());
  });
  app.setNotFoundHandler((request, reply) =>
    reply.code(404).send({
      error: {
        code: "not_found",
        message: `There is nothing at ${request.url.slice(0, 200)}.`,
        hint: "WebSocket endpoints: /create and /attach/{sandbox_id}.",
        retryable: false,
        details: {},
      },
    }),
  );
  return app;
}
