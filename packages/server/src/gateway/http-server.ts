import type { RequestListener, Server } from "node:http";
import type { Socket } from "node:net";
import { isSandboxId, SandboxerError } from "@sandboxer/protocol";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Registry } from "prom-client";
import { type InstanceCondition, LEFT_REASONS, type LeftSandbox } from "../manager/ownership/peers.ts";
import { keptAnswer } from "../support/kept-answer.ts";
import { INSTANCE, offerOf, PEER_HEADER, ringOf } from "./access/peer-secret.ts";
import { type Principal, requireScope } from "./access/principal.ts";
import { consoleServer } from "./console/serve-console.ts";
import { registerApi, type ApiOptions } from "./http/api.ts";
import { sendError } from "./http/error-body.ts";
import { fastifyApp } from "./http/fastify-app.ts";
import { cutSlowBodies } from "./http/slow-bodies.ts";
import { type McpEndpointOptions, registerMcp } from "./mcp/mcp-endpoint.ts";
import type { E2bGateway } from "./e2b/e2b-gateway.ts";
import type { Previews } from "./preview/previews.ts";
import { refuseWith } from "./websocket/refusal.ts";

export interface HttpServerOptions extends ApiOptions, McpEndpointOptions {
  /** Why the server accepts no work now, whatever its backend reports. */
  readonly phase: () => "starting" | "draining" | undefined;
  /** Whether the server could create a sandbox. Checked every few seconds at most. */
  readonly probe: () => Promise<{ readonly ok: boolean; readonly summary: string }>;
  /** Further facts of `/readyz` for authorized callers. */
  readonly readyDetails: () => Readonly<Record<string, unknown>>;
  readonly metrics: () => Registry;
  /** Another server of the store reports that it requests a sandbox of this one. */
  readonly onRing: (sandboxId: string) => void;
  /** Another server of the store offers a sandbox. Throws if this server does not accept it. */
  readonly onOffer: (left: LeftSandbox) => Promise<void>;
  /** Facts about this server for the others; undefined until it is ready. */
  readonly condition: (image: string | undefined) => Promise<InstanceCondition> | undefined;
  /** Called for each failure that is answered with a 500, with only its route. */
  readonly onFailure: (error: unknown, request: { readonly method: string; readonly route: string }) => void;
  /** Creates the server for HTTPS; undefined: plain HTTP. */
  readonly secureServer?: ((handler: RequestListener) => Server) | undefined;
  /** The time limits of request bodies. */
  readonly bodyTimeoutMs: number;
  /** Opens ports of sandboxes. */
  readonly previews: Pick<Previews, "takes" | "serve">;
  /** E2B's dialect; undefined: it is not served. */
  readonly e2b: E2bGateway | undefined;
  /** The folder of the built console; undefined: no console is served. */
  readonly consoleFolder: string | undefined;
  /** The built documentation, or where it will be; served beside the console. */
  readonly docsFolder: string;
}

/** Where requests are led that previews or E2B's dialect answer, whatever their path. Nothing else is there. */
const ELSEWHERE = "/internal/elsewhere";

/** More frequent requests get the same result. */
const KEEP_PROBE_MS = 3_000;

/** The HTTP server: liveness, readiness, metrics, and the API. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { e2b, previews, secureServer } = options;
  const app = fastifyApp({
    ...(secureServer === undefined ? {} : { serverFactory: secureServer }),
    clientErrorHandler: refuseBadHttp,
    // Before anything is read from the path: the hosts of previews have neither the API nor the console.
    rewriteUrl: (raw) => (e2b?.takes(raw) === true || previews.takes(raw) ? ELSEWHERE : (raw.url ?? "/")),
  });
  answerElsewhere(app, options);
  app.setErrorHandler((error, { method, routeOptions }, reply) => {
    const sent = sendError(error, reply);
    // The URL itself may contain a token.
    if (sent.statusCode === 500) options.onFailure(error, { method, route: routeOptions.url ?? "" });
    return sent;
  });
  cutSlowBodies(app, options.bodyTimeoutMs);
  const { gate } = options;
  const admit = ({ raw }: FastifyRequest): Principal => gate.admit(gate.requestOf(raw));
  app.get("/healthz", { exposeHeadRoute: true }, (request) => {
    admit(request);
    return { status: "ok" };
  });
  const probe = keptAnswer(KEEP_PROBE_MS, options.probe);
  app.get("/readyz", { exposeHeadRoute: true }, async (request, reply) => {
    const isStranger = admit(request).kind === "none";
    const phase = options.phase();
    const { ok, summary } = phase === undefined ? await probe() : { ok: false, summary: phase };
    const details = { summary, ...options.readyDetails() };
    // Everyone may know that the backend fails; the reason may contain paths and addresses.
    const told = isStranger ? (phase === undefined ? {} : { summary }) : details;
    return reply.code(ok ? 200 : 503).send({ status: ok ? "ready" : "not ready", ...told });
  });
  app.get("/metrics", async (request, reply) => {
    requireScope(admit(request), "read");
    return reply.type(options.metrics().contentType).send(await options.metrics().metrics());
  });
  const requirePeer = (request: FastifyRequest, what: string): void => {
    admit(request);
    if (options.peerSecret()?.isProof(request.headers[PEER_HEADER], what) === true) return;
    throw new SandboxerError("permission_denied", "Only servers of the same store can call this.", {
      hint: "Update the other servers of the store: earlier releases do not authenticate themselves.",
    });
  };
  // It only triggers a check that is due anyway.
  app.post<{ Params: { id: string } }>("/internal/ring/:id", async (request, reply) => {
    requirePeer(request, ringOf(request.params.id));
    if (isSandboxId(request.params.id)) options.onRing(request.params.id);
    return reply.code(204).send();
  });
  app.post<{ Params: { id: string }; Querystring: Record<string, string> }>(
    "/internal/offers/:id",
    async (request, reply) => {
      const { epoch, from = "", reason } = request.query;
      const left: LeftSandbox = {
        sandboxId: request.params.id,
        epoch: Number(epoch),
        from,
        reason: LEFT_REASONS.find((each) => each === reason) ?? "server_died",
      };
      requirePeer(request, offerOf(left));
      await options.onOffer(left);
      return reply.code(202).send();
    },
  );
  app.get<{ Querystring: { image?: string } }>("/internal/instance", (request) => {
    requirePeer(request, INSTANCE);
    return options.condition(request.query.image) ?? {};
  });
  void app.register(async (scope) => registerApi(scope, options));
  void app.register(async (scope) => registerMcp(scope, options));
  const { consoleFolder: folder, docsFolder } = options;
  const serveConsole = folder === undefined ? undefined : consoleServer({ folder, docsFolder, gate });
  app.setNotFoundHandler((request, reply) => {
    const served = serveConsole?.(request, reply);
    if (served !== undefined) return served;
    const unknown = new SandboxerError(
      "not_found",
      `There is nothing at ${request.method} ${request.url.slice(0, 200)}.`,
    );
    return sendError(unknown, reply);
  });
  return app;
}

/** Nothing is read of the bodies of these requests here. */
function answerElsewhere(app: FastifyInstance, { e2b, previews }: HttpServerOptions): void {
  app.all(ELSEWHERE, {
    onRequest: async ({ raw, originalUrl }, reply) => {
      raw.url = originalUrl;
      if (e2b?.takes(raw) === true) {
        const serve = await e2b.opened();
        reply.hijack();
        serve(raw, reply.raw);
      } else if (previews.takes(raw)) {
        reply.hijack();
        void previews.serve(raw, reply.raw);
      }
    },
    handler: (_request, reply) => reply.callNotFound(),
  });
  app.addHook("onClose", async () => await e2b?.close());
}

/** Input that is not HTTP, or too slow; there is no request yet to answer. */
function refuseBadHttp({ code }: NodeJS.ErrnoException, socket: Socket): void {
  if (code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  if (code === "HPE_HEADER_OVERFLOW") return refuseWith(socket, new SandboxerError("too_large", "Too many headers."));
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return refuseWith(socket, new SandboxerError("timeout", "The request was sent too slowly."));
  refuseWith(socket, new SandboxerError("bad_request", "This is not HTTP."));
}
