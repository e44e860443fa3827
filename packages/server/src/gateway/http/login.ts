import type { FastifyInstance } from "fastify";
import type { AccessGate } from "../access/access-gate.ts";
import { accessRequest } from "../access/shown-credential.ts";

/** For the server's own pages: exchanges the key of a request for a session's cookie, and ends the session. */
export function registerLogin(app: FastifyInstance, gate: AccessGate): void {
  const { authenticator } = gate;
  app.post("/v1/login", { schema: { hide: true } }, async ({ raw }, reply) => {
    const request = accessRequest(raw);
    gate.admit(request);
    const { principal, setCookie } = authenticator.login(request);
    if (setCookie !== undefined) reply.header("set-cookie", setCookie);
    const { kind, id, name, scopes } = principal;
    return { kind, id, name, scopes };
  });
  app.post("/v1/logout", { schema: { hide: true } }, async ({ raw }, reply) => {
    const request = accessRequest(raw);
    gate.admit(request);
    return reply.header("set-cookie", authenticator.logout(request)).code(204).send();
  });
}
