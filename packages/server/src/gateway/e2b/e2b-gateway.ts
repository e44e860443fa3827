import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { targetFrom } from "../preview/preview-address.ts";
import type { Previews } from "../preview/previews.ts";
import { clientOf, pathOf } from "./e2b-client.ts";
import { E2B_PREFIX, E2bRouter, INTERNAL_ROUTES, type E2bPart, type E2bTarget } from "./e2b-router.ts";
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

/** E2B's API as a dialect over the manager, for E2B's own clients. Nothing below the gateway knows of it. */
export class E2bGateway {
  readonly #router: E2bRouter;
  readonly #services: E2bServices;
  readonly #previews: Pick<Previews, "serve">;

  constructor(services: E2bServices, previews: Pick<Previews, "serve">) {
    this.#router = new E2bRouter(services.addresses);
    this.#services = services;
    this.#previews = previews;
  }

  /** The URL that Fastify routes; undefined: the request is not in E2B's dialect. */
  rewrite(request: IncomingMessage): string | undefined {
    return this.#router.rewrite(request);
  }

  register(app: FastifyInstance): void {
    const services = this.#services;
    app.decorateRequest("e2bTarget", undefined);
    void app.register(
      async (scope) => {
        answerErrors(scope, services);
        registerControl(scope, services);
      },
      { prefix: E2B_PREFIX },
    );
    void app.register(
      async (scope) => {
        answerInE2bShape(scope, services);
        scope.addHook("onRequest", (request, reply) => this.#arrive(request, reply));
        registerEnvd(scope, services);
      },
      { prefix: INTERNAL_ROUTES.envd },
    );
    void app.register(
      async (scope) => {
        answerInE2bShape(scope, services);
        scope.addHook("onRequest", (request, reply) => this.#arrive(request, reply));
        registerInterpreter(scope, services);
      },
      { prefix: INTERNAL_ROUTES.interpreter },
    );
    void app.register(
      async (scope) => {
        answerInE2bShape(scope, services);
        this.#registerPorts(scope);
      },
      { prefix: INTERNAL_ROUTES.port },
    );
  }

  /** A request to a sandbox: its owner answers it, wherever it is. */
  async #arrive(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const { target, path } = this.#partOf(request);
    this.#services.countCaller(request.raw);
    request.e2bTarget = target;
    if (target?.sandboxId === undefined) return undefined;
    return this.#services.relay.pass(request, reply, { ...target, sandboxId: target.sandboxId, path });
  }

  /** Other ports are programs inside; previews know who may open them. */
  #registerPorts(scope: FastifyInstance): void {
    scope.all("/", {
      onRequest: async (request, reply) => {
        const { target, path } = this.#partOf(request);
        const named = targetFrom(target?.sandboxId ?? "", String(target?.port));
        if (named === undefined) throw new E2bError(400, "The headers name no port of a sandbox.");
        request.raw.url = `/v1/sandboxes/${named.sandboxId}/ports/${named.port}${path}`;
        reply.hijack();
        void this.#previews.serve(request.raw, reply.raw);
      },
      handler: (_request, reply) => reply.callNotFound(),
    });
  }

  #partOf({ raw }: FastifyRequest): E2bPart {
    const part = this.#router.partOf(raw);
    if (part === undefined) throw new E2bError(404, "There is nothing at this path.");
    return part;
  }
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
