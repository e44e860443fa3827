import {
  e2bConnectSchema,
  e2bListSchema,
  e2bMetricsSchema,
  e2bNetworkUpdateSchema,
  e2bNewSandboxSchema,
  e2bPauseSchema,
  e2bRefreshSchema,
  e2bResumeSchema,
  e2bTimeoutSchema,
  type SandboxRecord,
} from "@sandboxer/protocol";
import type { FastifyInstance, FastifyReply } from "fastify";
import { IdempotentCalls } from "../../http/idempotency.ts";
import { digestOf, onceForAll } from "../../http/shared-calls.ts";
import type { E2bServices } from "../e2b-services.ts";
import { E2bError } from "../errors.ts";
import { type ControlCall, controlRoute, type ControlRoute } from "./control-route.ts";
import { createSandbox } from "./create.ts";
import { existing, settled } from "./existing.ts";
import { connectSandbox, pauseSandbox, refreshTimeout, setTimeoutOf } from "./lifecycle.ts";
import { listSandboxes } from "./list.ts";
import { metricsOf } from "./metrics.ts";
import { networkOf } from "./network.ts";
import { registerSnapshots } from "./snapshots.ts";
import { registerTemplates } from "./register-templates.ts";
import { registerUnsupported } from "./unsupported.ts";
import { detailView, listedView, sandboxView } from "./view.ts";

/** The timeouts of requests without one. */
const SECONDS = { v1: 15, v2: 300 } as const;

const ONE = { url: "/sandboxes/:sandboxID", scope: "use" } as const;

/** The control plane: sandboxes, snapshots and templates. */
export function registerControl(app: FastifyInstance, services: E2bServices): void {
  app.decorateRequest("e2bCaller", undefined);
  takeJson(app);
  app.get("/health", (request, reply) => {
    services.admitStranger(request.raw);
    return reply.code(204).send();
  });
  registerCreate(app, services);
  registerConnect(app, services);
  registerLifecycle(app, services);
  registerReads(app, services);
  registerSnapshots(app, services);
  registerTemplates(app, services);
  registerUnsupported(app, services);
}

/** Some clients send a JSON content type without a body, or a body without one. */
function takeJson(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>(["application/json", "*"], { parseAs: "string" }, (request, body, done) =>
    body === "" ? done(null) : void parseJson(request, body, done),
  );
}

interface BegunCreate {
  readonly result: Promise<SandboxRecord>;
}

function closeSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once("close", () => gone.abort());
  return gone.signal;
}

function registerCreate(app: FastifyInstance, services: E2bServices): void {
  const calls = new IdempotentCalls<BegunCreate>(() => performance.now());
  const once = ({ caller, request, reply }: ControlCall, key: string, body: object, begin: () => BegunCreate) => {
    const identity = JSON.stringify([caller.actor.who.id, "e2b", key]);
    const credential = String(request.headers["x-api-key"]);
    const shared = { identity, requestDigest: digestOf(body), credential, signal: closeSignal(reply) };
    const elsewhere = (answer: unknown): BegunCreate => ({ result: Promise.resolve(answer as SandboxRecord) });
    return calls.once(identity, shared.requestDigest, () => onceForAll(services.shared, shared, begin, elsewhere));
  };
  for (const [version, url] of [
    ["v1", "/sandboxes"],
    ["v2", "/v2/sandboxes"],
  ] as const) {
    controlRoute(app, services, { method: "POST", url, scope: "use", what: "createSandbox" }, async (call) => {
      const { caller, reply, request } = call;
      const body = call.body(e2bNewSandboxSchema);
      const begin = (): BegunCreate => ({
        result: caller.actor.does(
          "createSandbox",
          {},
          () => createSandbox(services, caller, body, SECONDS[version]),
          ({ id: sandboxId }) => ({ sandboxId }),
        ),
      });
      const key = idempotencyKeyOf(request.headers["idempotency-key"]);
      const { result } = await (key === undefined ? begin() : once(call, key, body, begin));
      return reply.code(201).send(sandboxView(services, await result));
    });
  }
}

function registerConnect(app: FastifyInstance, services: E2bServices): void {
  const connected = async (
    { caller, sandboxId, reply }: ControlCall,
    request: Parameters<typeof connectSandbox>[2],
  ): Promise<FastifyReply> => {
    const { record, resumed } = await caller.actor.does("resumeSandbox", { sandboxId }, () =>
      connectSandbox(services.manager, sandboxId, request, caller.options),
    );
    return reply.code(resumed ? 201 : 200).send(sandboxView(services, record));
  };
  for (const prefix of ["", "/v2"]) {
    const url = `${prefix}${ONE.url}/connect`;
    controlRoute(app, services, { ...ONE, method: "POST", url, what: "resumeSandbox" }, (call) => {
      const { timeout, memory } = call.body(e2bConnectSchema);
      return connected(call, { seconds: timeout ?? SECONDS.v2, memory: memory ?? true });
    });
  }
  const resume: ControlRoute = { ...ONE, method: "POST", url: `${ONE.url}/resume`, what: "resumeSandbox" };
  controlRoute(app, services, resume, async (call) => {
    const { timeout, memory, autoPause } = call.body(e2bResumeSchema);
    const { state } = await settled(services.manager, call.sandboxId);
    if (state === "running") throw new E2bError(409, `The sandbox ${call.sandboxId} is running.`);
    const onExpiry = autoPause == null ? undefined : autoPause ? "pause" : "delete";
    return connected(call, { seconds: timeout ?? SECONDS.v1, memory: memory ?? true, onExpiry });
  });
}

function registerLifecycle(app: FastifyInstance, services: E2bServices): void {
  const change = (route: ControlRoute, work: (call: ControlCall) => Promise<unknown>): void =>
    controlRoute(app, services, route, async (call) => {
      await call.caller.actor.does(route.what, { sandboxId: call.sandboxId }, () => work(call));
      return call.reply.code(204).send();
    });
  change({ ...ONE, method: "DELETE", what: "destroySandbox" }, async ({ sandboxId, caller }) => {
    await existing(services.manager, sandboxId);
    await services.manager.destroyById(sandboxId, undefined, caller.options);
  });
  change({ ...ONE, method: "POST", url: `${ONE.url}/timeout`, what: "extendTtl" }, async (call) =>
    setTimeoutOf(services.manager, call.sandboxId, call.body(e2bTimeoutSchema).timeout),
  );
  change({ ...ONE, method: "POST", url: `${ONE.url}/refreshes`, what: "extendTtl" }, async (call) =>
    refreshTimeout(services.manager, call.sandboxId, call.body(e2bRefreshSchema).duration ?? SECONDS.v1),
  );
  change({ ...ONE, method: "POST", url: `${ONE.url}/pause`, what: "checkpointSandbox" }, async (call) => {
    const { memory } = call.body(e2bPauseSchema);
    await pauseSandbox(services.manager, call.sandboxId, memory ?? true, call.caller.options);
  });
  change({ ...ONE, method: "PUT", url: `${ONE.url}/network`, what: "updateSandbox" }, async (call) => {
    const network = networkOf(call.body(e2bNetworkUpdateSchema)) ?? "open";
    await existing(services.manager, call.sandboxId);
    await services.manager.amend(call.sandboxId, undefined, { network });
  });
}

function registerReads(app: FastifyInstance, services: E2bServices): void {
  const read = { method: "GET", scope: "read", what: "listSandboxes" } as const;
  controlRoute(app, services, { ...read, url: "/v2/sandboxes" }, async ({ query, reply }) => {
    const { items, nextToken } = await listSandboxes(services.manager, query(e2bListSchema));
    if (nextToken !== undefined) reply.header("x-next-token", nextToken);
    return reply.send(items.map(({ record, state }) => listedView(services, record, state)));
  });
  controlRoute(app, services, { ...read, url: "/sandboxes" }, async ({ query, reply }) => {
    const { metadata } = query(e2bListSchema.pick({ metadata: true }));
    const asked = { metadata, state: ["running" as const], order: "desc" as const, limit: Infinity };
    const { items } = await listSandboxes(services.manager, asked);
    return reply.send(items.map(({ record, state }) => listedView(services, record, state)));
  });
  const info: ControlRoute = { ...read, url: ONE.url, everywhere: true };
  controlRoute(app, services, info, async ({ sandboxId, reply }) => {
    const { record, state } = await existing(services.manager, sandboxId);
    return reply.send(detailView(services, record, state));
  });
  controlRoute(app, services, { ...read, url: `${ONE.url}/metrics` }, async ({ sandboxId, query, reply }) => {
    const { state } = await existing(services.manager, sandboxId);
    const asked = query(e2bMetricsSchema);
    if (state === "paused") return reply.send([]);
    return reply.send(metricsOf(await services.manager.usage.of(sandboxId, undefined), asked));
  });
}

function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header === "string" && /^[\x21-\x7e]{1,255}$/.test(header)) return header;
  throw new E2bError(400, "Idempotency-Key must be 1 to 255 visible ASCII characters.");
}
