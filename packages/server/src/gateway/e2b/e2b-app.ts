import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { fastifyApp } from "../http/fastify-app.ts";
import { targetFrom } from "../preview/preview-address.ts";
import type { Previews } from "../preview/previews.ts";
import { clientOf, pathOf } from "./e2b-client.ts";
import { E2B_PREFIX, type E2bRouter, INTERNAL_ROUTES, type E2bTarget } from "./e2b-router.ts";
import type { E2bServices } from "./e2b-services.ts";
import { registerControl } from "./control/register.ts";
import { registerEnvd } from "./envd/register.ts";
import { E2bError, sendE2bError } from "./errors.ts";
import { registerInterpreter } from "./interpreter/register.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** For requests to a sandbox in E2B's dialect. */
    e2bTarget: E2bTarget | undefined;
  }
}

export interface E2bAppOptions {
  readonly router: E2bRouter;
  readonly services: E2bServices;
  readonly previews: Pick<Previews, "serve">;
}

/** The routes of E2B's dialect, for requests that the router has taken. */
export async function openE2bApp({ router, services, previews }: E2bAppOptions): Promise<FastifyInstance> {
  const app = fastifyApp({ rewriteUrl: (request) => router.rewrite(request) });
  app.decorateRequest("e2bTarget", undefined);
  void app.register(
    async (scope) => {
      answerErrors(scope, services);
      registerControl(scope, services);
    },
    { prefix: E2B_PREFIX },
  );
  /** A request to a sandbox: its owner answers it, wherever it is. */
  const arrive = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const { target, path } = router.partOf(request.raw);
    services.admitStranger(request.raw);
    request.e2bTarget = target;
    if (target?.sandboxId === undefined) return undefined;
    return services.relay.pass(request, reply, { ...target, sandboxId: target.sandboxId, path });
  };
  for (const [kind, register] of [
    ["envd", registerEnvd],
    ["interpreter", registerInterpreter],
  ] as const) {
    void app.register(
      async (scope) => {
        answerInE2bShape(scope, services);
        scope.addHook("onRequest", arrive);
        register(scope, services);
      },
      { prefix: INTERNAL_ROUTES[kind] },
    );
  }
  void app.register(
    async (scope) => {
      answerInE2bShape(scope, services);
      registerPorts(scope, { router, previews });
    },
    { prefix: INTERNAL_ROUTES.port },
  );
  await app.ready();
  return app;
}

/** Other ports are programs inside; previews know who may open them. */
function registerPorts(scope: FastifyInstance, { router, previews }: Omit<E2bAppOptions, "services">): void {
  scope.all("/", {
    onRequest: async (request, reply) => {
      const { target, path } = router.partOf(request.raw);
      const named = targetFrom(target?.sandboxId ?? "", String(target?.port));
      if (named === undefined) throw new E2bError(400, "The headers name no port of a sandbox.");
      request.raw.url = `/v1/sandboxes/${named.sandboxId}/ports/${named.port}${path}`;
      reply.hijack();
      void previews.serve(request.raw, reply.raw);
    },
    handler: (_request, reply) => reply.callNotFound(),
  });
}

/** E2B's clients read every answer as theirs, also of unknown routes. */
function answerInE2bShape(scope: FastifyInstance, services: E2bServices): void {
  answerErrors(scope, services);
  scope.setNotFoundHandler((request, reply) => {
    services.log.warn({ ...clientOf(request), method: request.method, path: pathOf(request) }, "unknown route of E2B");
    return sendE2bError(new E2bError(404, `This server does not know ${request.method} ${pathOf(request)}.`), reply);
  });
}

function answerErrors(scope: FastifyInstance, { log }: E2bServices): void {
  scope.setErrorHandler((error, { method, routeOptions }, reply) => {
    const sent = sendE2bError(error, reply);
    // The URL itself may contain a token.
    if (sent.statusCode === 500) log.error({ method, route: routeOptions.url, err: error }, "a request of E2B failed");
    return sent;
  });
}
