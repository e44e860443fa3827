import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { INSTANCE, PeerSecret } from "../../../src/gateway/access/peer-secret.ts";
import { openPeerSecret } from "../../../src/store/peer-secret.ts";
import { FakeClock } from "../../lease/fake-clock.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { call, pair, RELAY } from "../relay/support.ts";

const KEY = "a-key-of-the-server";
const WITH_KEY = { authorization: `Bearer ${KEY}` };

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown> & { error?: { code: string; message: string; hint: string } };
}

/** With headers that fetch would not send. */
async function ask(
  { httpUrl }: Pick<TestServer, "httpUrl">,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Answer> {
  const sent = request(httpUrl + path, { method, headers }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const text = Buffer.concat(await response.toArray()).toString();
  const isJson = response.headers["content-type"]?.startsWith("application/json") === true;
  return {
    status: response.statusCode,
    headers: response.headers,
    body: isJson ? (JSON.parse(text) as Answer["body"]) : {},
  };
}

const UPGRADE = { connection: "Upgrade", upgrade: "websocket" };
/** One of each kind that answers without a key too. */
const EVERYWHERE = [
  "/v1/sandboxes",
  "/healthz",
  "/readyz",
  "/openapi.json",
  "/metrics",
  "/internal/instance",
  "/mcp",
  "/",
];
/** In E2B's dialect: the control plane, signed files; and of a sandbox its processes, its interpreter, another port. */
const OF_E2B = [
  { path: "/e2b/health" },
  { path: "/e2b/sandboxes" },
  { path: "/files?signature=v1_x" },
  { path: "/e2b/health", port: "49983" },
  { path: "/e2b/envs", port: "49983" },
  { path: "/e2b/health", port: "49999" },
  { path: "/e2b/contexts", port: "49999" },
  { path: "/e2b/", port: "8000" },
];

/** Asks for each of {@link OF_E2B}. */
async function askAsE2b(server: TestServer, headers: Record<string, string>): Promise<Answer[]> {
  const { id } = await server.create({}, { headers: WITH_KEY });
  const answers: Answer[] = [];
  for (const { path, port } of OF_E2B) {
    const target = port === undefined ? {} : { "e2b-sandbox-id": id, "e2b-sandbox-port": port };
    const tokens = { "x-access-token": server.e2bToken(id), "x-api-key": KEY };
    answers.push(await ask(server, path, { ...target, ...tokens, ...headers }));
  }
  return answers;
}

describe("a server without keys", () => {
  test.each(["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via"])(
    "refuses what came through a proxy, by %s",
    async (header) => {
      const server = await startTestServer({ store: null, consoleFolder: "/nonexistent" });
      for (const path of EVERYWHERE) {
        expect([path, await ask(server, path, { [header]: "for=192.0.2.1" })]).toMatchObject([
          path,
          {
            status: 403,
            body: { error: { code: "permission_denied", hint: expect.stringContaining("--trusted-proxy") } },
          },
        ]);
      }
      expect((await ask(server, "/create", { ...UPGRADE, [header]: "192.0.2.1" })).status).toBe(403);
      const asked = await askAsE2b(server, { [header]: "for=192.0.2.1" });
      expect(asked.map(({ status }) => status)).toEqual(OF_E2B.map(() => 403));
    },
  );

  test("is accepted from a trusted proxy", async () => {
    const server = await startTestServer({ store: null, access: { trustedProxies: ["127.0.0.0/8"] } });
    expect((await ask(server, "/v1/sandboxes", { "x-forwarded-for": "192.0.2.1", via: "1.1 proxy" })).status).toBe(200);
    const { client } = await server.create({}, { headers: { "x-forwarded-for": "192.0.2.1" } });
    expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
  });

  test("refuses requests of other sites, and accepts those of its own and of programs", async () => {
    const server = await startTestServer({ store: null, consoleFolder: "/nonexistent" });
    const from = (site: string) => ({ "sec-fetch-site": site });
    for (const path of EVERYWHERE) {
      expect([path, (await ask(server, path, from("cross-site"))).status]).toEqual([path, 403]);
    }
    expect((await ask(server, "/create", { ...UPGRADE, ...from("cross-site") })).status).toBe(403);
    const asked = await askAsE2b(server, from("cross-site"));
    expect(asked.map(({ status }) => status)).toEqual(OF_E2B.map(() => 403));
    const rebound = await askAsE2b(server, { host: "evil.example" });
    expect(rebound.map(({ status }) => status)).toEqual(OF_E2B.map(() => 403));
    for (const site of ["same-origin", "same-site", "none"])
      expect((await ask(server, "/v1/sandboxes", from(site))).status).toBe(200);
  });

  test("shows its console when a link of another site is followed, and nothing else", async () => {
    const server = await startTestServer({ store: null, consoleFolder: "/nonexistent" });
    const visit = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    // It is not built here.
    expect((await ask(server, "/", visit)).status).toBe(404);
    expect((await ask(server, "/v1/sandboxes", visit)).status).toBe(403);
    expect((await ask(server, "/", { ...visit, "sec-fetch-dest": "iframe" })).status).toBe(403);
  });
});

test("a server with keys does not check the origin of a request", async () => {
  const server = await startTestServer({ store: null, apiKeys: [KEY] });
  const headers = { ...WITH_KEY, "x-forwarded-for": "192.0.2.1", via: "1.1 proxy", "sec-fetch-site": "cross-site" };
  expect((await ask(server, "/v1/sandboxes", headers)).status).toBe(200);
});

describe("the address that a trusted proxy names", () => {
  const rated = (trustedProxies: readonly string[]): TestServerOptions => ({
    store: null,
    apiKeys: [KEY],
    access: { trustedProxies, rateLimit: 1, rateBurst: 1, clock: new FakeClock() },
  });

  test("is the one that limits apply to", async () => {
    const server = await startTestServer(rated(["127.0.0.1"]));
    const status = async (client: string) => (await ask(server, "/healthz", { "x-forwarded-for": client })).status;
    expect([await status("192.0.2.1"), await status("192.0.2.1"), await status("192.0.2.2")]).toEqual([200, 429, 200]);
    const other = await startTestServer(rated([]));
    const unbelieved = async (client: string) => (await ask(other, "/healthz", { "x-forwarded-for": client })).status;
    expect([await unbelieved("192.0.2.1"), await unbelieved("192.0.2.2")]).toEqual([200, 429]);
  });

  test("is the one in the audit log", async () => {
    const lines: Record<string, unknown>[] = [];
    const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as never) });
    const server = await startTestServer({ store: null, access: { trustedProxies: ["127.0.0.1"], log } });
    await ask(server, `/v1/sandboxes/${randomUUID()}`, { "x-forwarded-for": "192.0.2.9" }, "DELETE");
    await server.create({}, { headers: { forwarded: "for=192.0.2.8" } });
    expect(lines).toMatchObject([
      { what: "destroySandbox", address: "192.0.2.9" },
      { what: "create", address: "192.0.2.8" },
    ]);
  });
});

describe("every answer of JSON", () => {
  test("may be neither cached nor read by other sites, including errors", async () => {
    const server = await startTestServer({ store: null, apiKeys: [KEY] });
    const asked: [string, Record<string, string>][] = [
      ["/v1/sandboxes", WITH_KEY],
      ["/v1/sandboxes", {}],
      ["/v1/nothing", {}],
      ["/v1/sandboxes/%zz", {}],
      ["/healthz", {}],
      ["/readyz", {}],
      ["/openapi.json", {}],
      ["/internal/instance", {}],
      ["/create", UPGRADE],
      ["/mcp", WITH_KEY],
      ["/mcp", {}],
    ];
    const answers = [
      ...(await Promise.all(asked.map(([path, headers]) => ask(server, path, headers)))),
      ...(await askAsE2b(server, {})),
      ...(await askAsE2b(server, { "x-access-token": "wrong", "x-api-key": "wrong" })),
    ];
    for (const { headers: told, ...answer } of answers) {
      expect([answer, told["cross-origin-resource-policy"], told["cache-control"]]).toEqual([
        answer,
        "same-origin",
        "no-store",
      ]);
    }
  });
});

describe("/healthz, /readyz, /openapi.json and /internal", () => {
  test.each(["/healthz", "/readyz", "/openapi.json", "/internal/instance"])("%s has limits too", async (path) => {
    const server = await startTestServer({
      store: null,
      access: { rateLimit: 1, rateBurst: 1, clock: new FakeClock() },
    });
    expect((await ask(server, path, { host: "evil.example" })).status).toBe(403);
    expect((await ask(server, path, { origin: "https://evil.example" })).status).toBe(403);
    expect((await ask(server, path)).status).not.toBe(429);
    expect((await ask(server, path)).status).toBe(429);
  });
});

describe("/readyz", () => {
  test("tells strangers only whether the server is ready", async () => {
    const server = await startTestServer({ apiKeys: [KEY] });
    expect((await ask(server, "/readyz")).body).toEqual({ status: "ready" });
    const { body } = await ask(server, "/readyz", WITH_KEY);
    expect(body).toEqual({ status: "ready", summary: "fine", store: server.storeFolder });
  });

  test("probes the backend rarely, not for each call", async () => {
    let probes = 0;
    const probe = async () => ({ ok: true, summary: `probe ${++probes}` });
    const server = await startTestServer({ store: null, probe });
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(server, "/readyz")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(probes).toBe(1);
  });

  test("reports at once that the server is shutting down", async () => {
    const server = await startTestServer({ store: null, apiKeys: [KEY] });
    expect((await ask(server, "/readyz")).status).toBe(200);
    const { client } = await server.create({}, { headers: WITH_KEY });
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("destroy", { until: held.promise });
    const drained = server.drain();
    expect(await ask(server, "/readyz")).toMatchObject({
      status: 503,
      body: { status: "not ready", summary: "draining" },
    });
    held.resolve();
    await Promise.all([drained, client.closed]);
  });
});

describe("requests between the servers of a store", () => {
  test("is for servers of that store only", async () => {
    const [one, other] = [await startTestServer(), await startTestServer()];
    const two = await startTestServer({ store: one.storeFolder ?? null });
    const instances = async ({ httpUrl }: TestServer) =>
      (await call("GET", `${httpUrl}/v1/instances`)).body["items"] as { frozen: boolean | null }[];
    expect((await instances(one)).map(({ frozen }) => frozen)).toEqual([false, false]);
    for (const headers of [{}, { "sandboxer-peer": "0".repeat(64) }, { "sandboxer-peer": await proofOf(other) }]) {
      expect((await ask(two, "/internal/instance", headers)).status).toBe(403);
      expect((await ask(two, `/internal/ring/${randomUUID()}`, headers, "POST")).status).toBe(403);
    }
    expect((await ask(two, "/internal/instance", { "sandboxer-peer": await proofOf(one) })).status).toBe(200);
    // It is good for what it was made for.
    const ring = `/internal/ring/${randomUUID()}`;
    expect((await ask(two, ring, { "sandboxer-peer": await proofOf(one) }, "POST")).status).toBe(403);
  });

  test("a call through a trusted proxy is relayed to the owner", async () => {
    const { url } = await pair({ access: { trustedProxies: ["127.0.0.1"] } });
    const headers = { ...RELAY, "x-forwarded-for": "192.0.2.1", via: "1.1 proxy" };
    expect((await ask({ httpUrl: url }, "/stats", headers)).status).toBe(200);
  });
});

async function proofOf({ durable }: TestServer): Promise<string> {
  return new PeerSecret(await openPeerSecret(durable.ownership.instances.store)).proofOf(INSTANCE);
}
