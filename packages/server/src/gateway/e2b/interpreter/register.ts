import type { FastifyInstance, FastifyRequest } from "fastify";
import type { E2bServices } from "../e2b-services.ts";
import { E2bError } from "../errors.ts";

/** The code interpreter: what E2B's clients send to port 49999. `request.e2bTarget` names the sandbox. */
export function registerInterpreter(app: FastifyInstance, services: E2bServices): void {
  const answer = async (request: FastifyRequest): Promise<never> => {
    const { sandboxId = "" } = request.e2bTarget ?? {};
    services.requireToken("traffic", sandboxId, request);
    await services.running(sandboxId);
    throw new E2bError(501, "This server has no code interpreter for E2B's clients yet.");
  };
  app.route({ method: ["GET", "POST", "DELETE"], url: "/*", handler: answer });
}
