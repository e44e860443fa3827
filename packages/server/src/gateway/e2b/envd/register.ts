import type { FastifyInstance } from "fastify";
import type { E2bServices } from "../e2b-services.ts";

/**
 * Processes and files of sandboxes: what E2B's clients send to port 49983. `request.e2bTarget` names the sandbox, which
 * is on no other server; for signed URLs of files it names none.
 */
export function registerEnvd(app: FastifyInstance, services: E2bServices): void {
  app.get("/health", async ({ e2bTarget }, reply) => {
    await services.running(e2bTarget?.sandboxId ?? "");
    return reply.code(204).send();
  });
}
