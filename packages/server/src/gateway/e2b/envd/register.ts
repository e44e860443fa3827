import type { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { STREAM_TYPE } from "../connect/connect-stream.ts";
import type { E2bServices } from "../e2b-services.ts";
import { EnvdCalls } from "./envd-calls.ts";
import { FileAccess } from "./file-access.ts";
import { registerFileRoutes } from "./file-routes.ts";
import { registerFilesystemService } from "./filesystem-service.ts";
import { registerProcessService } from "./process-service.ts";
import { registerSystemRoutes } from "./system-routes.ts";
import { registerWatchService } from "./watch-service.ts";

/**
 * Processes and files of sandboxes: what E2B's clients send to port 49983. `request.e2bTarget` names the sandbox, which
 * is on no other server; for signed URLs of files it names none.
 */
export function registerEnvd(app: FastifyInstance, services: E2bServices): void {
  const calls = new EnvdCalls(services);
  // Before anything of a body is read. Files have signed URLs too, and everyone may ask for the health.
  app.addHook("onRequest", async (request) => {
    const { url = "" } = request.routeOptions;
    if (request.is404 || url.endsWith("/health") || url.endsWith("/files")) return;
    services.requireToken("envd", request.e2bTarget?.sandboxId ?? "", request);
  });
  app.addContentTypeParser(STREAM_TYPE, (_request, payload: Readable, done) => done(null, payload));
  registerSystemRoutes(app, services, calls);
  registerProcessService(app, services, calls);
  registerFilesystemService(app, services, calls);
  registerWatchService(app, services, calls);
  registerFileRoutes(app, services, new FileAccess(services));
}
