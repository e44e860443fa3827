import { METHODS } from "node:http";
import type { Socket } from "node:net";
import { isSandboxId, SandboxerError } from "@sandboxer/protocol";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { serializerCompiler, validatorCompiler } from "fastify-type-provider-zod";
import type { Registry } from "prom-client";
import type { InstanceCondition } from "../manager/ownership/peers.ts";
import { keptAnswer } from "../support/kept-answer.ts";
import { INSTANCE, PEER_HEADER, type PeerSecret, ringOf } from "./access/peer-secret.ts";
import { type Principal, requireScope } from "./access/principal.ts";
import { consoleServer } from "./console/serve-console.ts";
import { NEVER_RENDERED } from "./console/security-headers.ts";
import { registerApi, type ApiOptions } from "./http/api.ts";
import { sendError } from "./http/error-body.ts";
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
  /** Facts about this server for the others; undefined until it is ready. */
  readonly condition: () => InstanceCondition | undefined;
  /** Called for each failure that is answered with a 500, with only its route. */
  readonly onFailure: (error: unknown, request: { readonly method: string; readonly route: string }) => void;
  /** The shared secret of the store's servers; undefined until it is known. */
  readonly peerSecret: () => PeerSecret | undefined;
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

const MAX_JSON_BYTES = 8 * 1024 * 1024;

const MAX_PARAMETER_LENGTH = 256;

/** Where requests for ports of sandboxes are led, whatever their path. Nothing else is there. */
const PREVIEW_ROUTE = "/internal/preview";
/** Methods that programs inside may use, besides those that Fastify knows. */
const MORE_METHODS = METHODS.filter((method) => method !== "CONNECT" && method !== "QUERY");

/** More frequent requests get the same result. */
const KEEP_PROBE_MS = 3_000;

/** The HTTP server: liveness, readiness, metrics, and the API. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: MAX_JSON_BYTES,
    forceCloseConnections: true,
    // Otherwise a HEAD would do everything that its GET does, and follow events or output that nobody reads.
    exposeHeadRoutes: false,
    // Set here and not later, because Fastify would load its own compilers first. Its types know only those.
    schemaController: {
      compilersFactory: {
        buildValidator: () => validatorCompiler as never,
        buildSerializer: () => serializerCompiler as never,
      },
    },
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    // A path that cannot be decoded, or has a part that is too long.
    frameworkErrors: (error, _request, reply) => void sendError(error, reply.headers(NEVER_RENDERED)),
    clientErrorHandler: refuseBadHttp,
    // Before anything is read from the path: the hosts of previews have neither the API nor the console.
    rewriteUrl: (raw) => options.e2b?.rewrite(raw) ?? (options.previews.takes(raw) ? PREVIEW_ROUTE : (raw.url ?? "/")),
  });
  servePreviews(app, options.previews);
  app.setErrorHandler((error, { method, routeOptions }, reply) => {
    const sent = sendError(error, reply);
    // The URL itself may contain a token.
    if (sent.statusCode === 500) options.onFailure(error, { method, route: routeOptions.url ?? "" });
    return sent;
  });
  // Many responses contain data from sandboxes. The console, which is rendered, sets its own headers.
  app.addHook("onRequest", async (_request, reply) => void reply.headers(NEVER_RENDERED));
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
  app.get("/internal/instance", (request) => {
    requirePeer(request, INSTANCE);
    return options.condition() ?? {};
  });
  void app.register(async (scope) => registerApi(scope, options));
  void app.register(async (scope) => registerMcp(scope, options));
  options.e2b?.register(app);
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

/** Their bodies are neither parsed nor limited. */
function servePreviews(app: FastifyInstance, previews: HttpServerOptions["previews"]): void {
  for (const method of MORE_METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method, { hasBody: true });
  }
  app.all(PREVIEW_ROUTE, {
    onRequest: async ({ raw, originalUrl }, reply) => {
      raw.url = originalUrl;
      if (!previews.takes(raw)) return;
      reply.hijack();
      void previews.serve(raw, reply.raw);
    },
    handler: (_request, reply) => reply.callNotFound(),
  });
}

/** Input that is not HTTP, or too slow; there is no request yet to answer. */
function refuseBadHttp({ code }: NodeJS.ErrnoException, socket: Socket): void {
  if (code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  if (code === "HPE_HEADER_OVERFLOW") return refuseWith(socket, new SandboxerError("too_large", "Too many headers."));
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return refuseWith(socket, new SandboxerError("timeout", "The request was sent too slowly."));
  refuseWith(socket, new SandboxerError("bad_request", "This is not HTTP."));
}
