import type { Readable } from "node:stream";
import swagger from "@fastify/swagger";
import type { FastifyInstance } from "fastify";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import type { AccessGate } from "../access/access-gate.ts";
import type { AuditLog } from "../access/audit-log.ts";
import { KeyWatch } from "../access/key-watch.ts";
import { HttpRelay } from "../relay/http-relay.ts";
import { callBeginner, type OnMutation } from "./begin-call.ts";
import { registerRoutes, type RegisterOptions } from "./register.ts";

export interface ApiOptions extends Pick<RegisterOptions, "service" | "authorize"> {
  readonly version: string;
  readonly gate: AccessGate;
  readonly audit: AuditLog;
  readonly onMutation: OnMutation;
}

/** Registers the HTTP API: the table of routes, and its OpenAPI document. */
export async function registerApi(app: FastifyInstance, options: ApiOptions): Promise<void> {
  const parseJson = app.getDefaultJsonParser("error", "error");
  // Many clients send a JSON content type without a body.
  app.addContentTypeParser<string>("application/json", { parseAs: "string" }, (request, body, done) =>
    body === "" ? done(null) : void parseJson(request, body, done),
  );
  // Bytes are streamed, not buffered.
  for (const type of ["application/octet-stream", "application/x-tar"]) {
    app.addContentTypeParser(type, (_request, payload: Readable, done) => done(null, payload));
  }
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "sandboxer",
        version: options.version,
        description: "Sandboxes that you can pause on one machine and resume on another.",
      },
      components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
      security: [{ key: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  const begin = callBeginner(options.onMutation);
  const isAlive = async (instanceId: string): Promise<boolean> =>
    (await options.service()?.otherServer(instanceId)) !== undefined;
  const relay = new HttpRelay(options.audit, isAlive);
  const watch = new KeyWatch(options.gate.authenticator);
  app.addHook("onClose", async () => watch.stop());
  const onStream: RegisterOptions["onStream"] = ({ principal }, body, sendAway) => {
    const closed = new AbortController();
    watch.add({ actor: { who: principal }, gone: closed.signal, sendAway });
    body.once("close", () => closed.abort());
    if (body.closed) closed.abort();
  };
  await app.register(async (scope) => registerRoutes(scope, { ...options, relay, begin, onStream }));
  registerLogin(app, options.gate);
  app.get("/openapi.json", { schema: { hide: true } }, ({ raw }) => {
    options.gate.admit(options.gate.requestOf(raw));
    return app.swagger();
  });
}

/** For the server's own pages: exchanges the key of a request for a session cookie, and ends the session. */
function registerLogin(app: FastifyInstance, gate: AccessGate): void {
  const { authenticator } = gate;
  app.post("/v1/login", { schema: { hide: true } }, async ({ raw }, reply) => {
    const request = gate.requestOf(raw);
    gate.admit(request);
    const { principal, setCookie } = authenticator.login(request);
    if (setCookie !== undefined) reply.header("set-cookie", setCookie);
    const { kind, id, name, scopes } = principal;
    return { kind, id, name, scopes };
  });
  app.post("/v1/logout", { schema: { hide: true } }, async ({ raw }, reply) => {
    const request = gate.requestOf(raw);
    gate.admit(request);
    return reply.header("set-cookie", authenticator.logout(request)).code(204).send();
  });
}
