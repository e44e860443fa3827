import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import swagger from "@fastify/swagger";
import type { FastifyInstance } from "fastify";
import { jsonSchemaTransform, serializerCompiler, validatorCompiler } from "fastify-type-provider-zod";
import type { Route, RouteName } from "@sandboxer/protocol";
import type { Operation } from "../../manager/operations/operation.ts";
import type { AccessGate } from "../access/access-gate.ts";
import { KeyWatch } from "../access/key-watch.ts";
import type { Call, Caller, Service } from "./handler.ts";
import { IdempotentCalls } from "./idempotency.ts";
import { registerLogin } from "./login.ts";
import { registerRoutes, type Begun, type RegisterOptions } from "./register.ts";

export interface ApiOptions {
  readonly version: string;
  /** Undefined until the server is ready. */
  readonly service: () => Service | undefined;
  readonly gate: AccessGate;
  /** Who calls; throws for one who may not. */
  readonly authorize: (request: IncomingMessage, route: Route) => Caller;
  /** Told of the end of every call that may have changed something: its answer or its error. */
  readonly onMutation: (name: RouteName, call: Call<Route>, outcome: Outcome) => void;
}

export interface Outcome {
  readonly answer?: unknown;
  readonly error?: unknown;
  /** Of the sandbox that the path names, before the call, if it was owned here. */
  readonly epoch?: number | undefined;
  readonly operation?: Operation | undefined;
}

/** Puts the HTTP interface on a server: the table of routes, and the document that describes it. */
export async function registerApi(app: FastifyInstance, options: ApiOptions): Promise<void> {
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  // Bytes go through as they come: nothing of them is held here.
  for (const type of ["application/octet-stream", "application/x-tar"]) {
    app.addContentTypeParser(type, (_request, payload: Readable, done) => done(null, payload));
  }
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "sandboxer",
        version: options.version,
        description: "Sandboxes that you can put down and pick up anywhere.",
      },
      components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
      security: [{ key: [] }],
    },
    transform: jsonSchemaTransform,
  });
  const calls = new IdempotentCalls<Begun>(() => performance.now());
  const around: RegisterOptions["around"] = (name, route, call, begin) => {
    const epoch = sandboxEpoch(options.service(), route, call);
    const failed = (error: unknown, operation?: Operation): never => {
      options.onMutation(name, call, { error, epoch, operation });
      throw error;
    };
    const audited = (): Begun => {
      const { operation, result } = begin();
      const told = result.then(
        (answer) => (options.onMutation(name, call, { answer, epoch, operation }), answer),
        (error: unknown) => failed(error, operation),
      );
      return { operation, result: told };
    };
    const { idempotencyKey: key, caller, params, query, body } = call;
    if (route.method === "GET") return begin();
    if (key === undefined || route.idempotent !== true || route.rememberedBySandbox === true) return audited();
    try {
      return calls.once([caller.id, name, key], { params, query, body }, audited);
    } catch (error) {
      return failed(error);
    }
  };
  const watch = new KeyWatch(options.gate.authenticator);
  app.addHook("onClose", async () => watch.stop());
  const onStream: RegisterOptions["onStream"] = ({ principal }, body, sendAway) => {
    const closed = new AbortController();
    watch.add({ actor: { who: principal }, gone: closed.signal, sendAway });
    body.once("close", () => closed.abort());
    if (body.closed) closed.abort();
  };
  await app.register(async (scope) => registerRoutes(scope, { ...options, around, onStream }));
  registerLogin(app, options.gate);
  app.get("/openapi.json", { schema: { hide: true } }, () => app.swagger());
}

function sandboxEpoch(service: Service | undefined, { path }: Route, { params }: Call<Route>): number | undefined {
  if (!path.startsWith("/v1/sandboxes/{id}")) return undefined;
  return service?.epochOf((params as unknown as { readonly id: string }).id);
}
