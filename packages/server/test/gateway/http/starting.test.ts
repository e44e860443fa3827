import { request } from "node:http";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { openAccess } from "../../../src/gateway/access/open-access.ts";
import { authorizer } from "../../../src/gateway/http/authorize.ts";
import { createHttpServer } from "../../../src/gateway/http-server.ts";
import { Metrics } from "../../../src/gateway/metrics.ts";
import { PreviewAddresses } from "../../../src/gateway/preview/preview-address.ts";
import { Previews } from "../../../src/gateway/preview/previews.ts";
import { SignedLinks } from "../../../src/gateway/preview/signed-links.ts";
import { WebSocketGateway } from "../../../src/gateway/websocket/upgrade.ts";
import { systemClock } from "../../../src/support/clock.ts";

/** A server that listens, and has no manager yet. */
async function startingServer(): Promise<string> {
  const log = pino({ level: "silent" });
  const access = { apiKeys: [], keyFile: undefined, loopbackOnly: true, rateLimit: 0, clock: systemClock, log };
  const { gate, audit } = openAccess(access);
  const none = (): undefined => undefined;
  const metrics = new Metrics({
    states: () => ({}),
    dozing: () => 0,
    clients: () => 0,
    warm: none,
    atRisk: () => 0,
    integrity: none,
  });
  const links = new SignedLinks(none);
  const addresses = new PreviewAddresses({ domain: undefined, ownPort: () => 0 });
  const limits = { maxPreviews: 1, wakeTimeoutMs: 1000 };
  const previews = new Previews({ gate, addresses, links, ...limits, manager: none, peerSecret: none });
  const app = createHttpServer({
    previews,
    e2b: undefined,
    metrics: () => metrics.registry,
    phase: () => "starting",
    probe: async () => ({ ok: false, summary: "" }),
    readyDetails: () => ({}),
    peerSecret: none,
    bodyTimeoutMs: 30_000,
    condition: none,
    onRing: none,
    onOffer: async () => {},
    version: "test",
    service: none,
    gate,
    audit,
    authorize: authorizer(gate, audit),
    onMutation: () => {},
    answerMcp: async () => new Response(),
    onFailure: () => {},
    consoleFolder: undefined,
    docsFolder: "/nonexistent",
  });
  const gateway = new WebSocketGateway(app.server, {
    gate,
    audit,
    previews,
    manager: none,
    peerSecret: none,
    maxClients: 1,
    maxMessageBytes: 1024,
    log,
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    await gateway.close(0);
    await app.close();
  });
  return url;
}

const STARTING = { code: "starting", message: "The server is starting.", retryable: true };

test("a starting server reports that, and not that it is shutting down", async () => {
  const answer = await fetch(`${await startingServer()}/v1/sandboxes`);
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ error: STARTING });
});

test("it reports the same to WebSocket requests", async () => {
  const url = await startingServer();
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": Buffer.alloc(16).toString("base64"),
  };
  const body = await new Promise<string>((resolve, reject) => {
    const asked = request(`${url}/create`, { headers }, (answer) => {
      expect(answer.statusCode).toBe(503);
      let text = "";
      answer.on("data", (data: Buffer) => (text += data.toString()));
      answer.on("end", () => resolve(text));
    });
    asked.on("error", reject).end();
  });
  expect(JSON.parse(body)).toMatchObject({ error: STARTING });
});
