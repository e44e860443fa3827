import type { FastifyInstance } from "fastify";
import type { E2bServices } from "../e2b-services.ts";

/** The control plane: sandboxes, snapshots and templates. */
export function registerControl(app: FastifyInstance, _services: E2bServices): void {
  app.get("/health", (_request, reply) => reply.code(204).send());
}
