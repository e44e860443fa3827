import type { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import type { AccessGate } from "../access/access-gate.ts";
import type { AuditLog } from "../access/audit-log.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import { KeyWatch } from "../access/key-watch.ts";
import { HttpRelay } from "../relay/http-relay.ts";
import { callBeginner, type OnMutation } from "./begin-call.ts";
import { registerRoutes, type RegisterOptions } from "./register.ts";

export interface ApiOptions extends Pick<RegisterOptions, "service" | "authorize"> {
  readonly version: string;
  readonly gate: AccessGate;
  readonly audit: AuditLog;
  readonly onMutation: OnMutation;
  /** The shared secret of the store's servers; undefined until it is known. */
  readonly peerSecret: () => PeerSecret | undefined;
}

/** Registers the HTTP API: the table of routes, and its OpenAPI document. */
export function registerApi(app: FastifyInstance, options: ApiOptions): void {
  const parseJson = app.getDefaultJsonParser("error", "error");
  // Many clients send a JSON content type without a body.
  app.addContentTypeParser<string>("application/json", { parseAs: "string" }, (request, body, done) =>
    body === "" ? done(null) : void parseJson(request, body, done),
  );
  // Bytes are streamed, not buffered.
  for (const type of ["application/octet-stream", "application/x-tar"]) {
    app.addContentTypeParser(type, (_request, payload: Readable, done) => done(null, payload));
  }
  const begin = callBeginner(options.onMutation);
  const isAlive = (instanceId: string): boolean => options.service()?.isKnownDead(instanceId) !== true;
  const relay = new HttpRelay({ ...options, isAlive });
  const watch = new KeyWatch(options.gate.authenticator);
  app.addHook("onClose", async () => watch.stop());
  const onStream: RegisterOptions["onStream"] = ({ principal }, body, sendAway) => {
    const closed = new AbortController();
    watch.add({ actor: { who: principal }, gone: closed.signal, sendAway });
    body.once("close", () => closed.abort());
    if (body.closed) closed.abort();
  };
  registerRoutes(app, { ...options, relay, begin, onStream });
  registerLogin(app, options.gate);
  let document: Promise<object> | undefined;
  app.get("/openapi.json", async ({ raw }) => {
    options.gate.admit(options.gate.requestOf(raw));
    // Few ask for it, and a server would start later if it made the document each time.
    document ??= import("./openapi.ts").then(({ openApiDocument }) => openApiDocument(options.version));
    return await document.catch((error: unknown) => {
      // The next request tries again.
      document = undefined;
      throw error;
    });
  });
}

/** For the server's own pages: exchanges the key of a request for a session cookie, and ends the session. */
function registerLogin(app: FastifyInstance, gate: AccessGate): void {
  const { authenticator } = gate;
  app.post("/v1/login", async ({ raw }, reply) => {
    const request = gate.requestOf(raw);
    gate.admit(request);
    const { principal, setCookie } = authenticator.login(request);
    if (setCookie !== undefined) reply.header("set-cookie", setCookie);
    const { kind, id, name, scopes } = principal;
    return { kind, id, name, scopes };
  });
  app.post("/v1/logout", async ({ raw }, reply) => {
    const request = gate.requestOf(raw);
    gate.admit(request);
    const { removeCookie, ended } = authenticator.logout(request);
    reply.header("set-cookie", removeCookie);
    await ended;
    return reply.code(204).send();
  });
}
