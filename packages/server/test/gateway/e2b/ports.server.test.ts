import { Sandbox } from "e2b";
import { expect, test } from "vitest";
import type { TestServer } from "../../../../../test/kit/server/test-server.ts";
import { call, get, PORT, serveInside } from "../preview/support.ts";
import { startForE2b } from "./sdk.ts";

const KEY = "a-key-of-twenty-characters";
const LISTEN = `require("net").createServer((c) => c.pipe(c)).listen(${PORT}, "127.0.0.1")`;

async function listen(server: TestServer, { sandboxId }: Sandbox): Promise<string> {
  const body = { command: ["node", "-e", LISTEN], detach: true };
  await call(server, "POST", `/v1/sandboxes/${sandboxId}/exec`, body, KEY);
  const { handle } = await server.live(sandboxId);
  await expect.poll(async () => (await handle.listeningPorts?.())?.length).toBe(1);
  return `${PORT}-${sandboxId}.sandboxes.example`;
}

test("ports open to everyone, or with allowPublicTraffic false to holders of the token", async () => {
  const server = await startForE2b({ apiKeys: [KEY], previewDomain: "https://sandboxes.example" });
  serveInside(server.backend, (_request, answer) => void answer.end("hello"));
  const open = await Sandbox.create();
  const host = await listen(server, open);
  expect(open.getHost(PORT)).toBe(host);
  expect(await get({ server, host })).toMatchObject({ status: 200, text: "hello" });
  const closed = await Sandbox.create({ network: { allowPublicTraffic: false } });
  const closedHost = await listen(server, closed);
  expect((await get({ server, host: closedHost })).status).toBe(401);
  const headers = { "e2b-traffic-access-token": closed.trafficAccessToken ?? "" };
  expect(await get({ server, host: closedHost }, { headers })).toMatchObject({ status: 200, text: "hello" });
  const another = { "e2b-traffic-access-token": open.trafficAccessToken ?? "" };
  expect((await get({ server, host: closedHost }, { headers: another })).status).toBe(401);
  const named = { "e2b-sandbox-id": open.sandboxId, "e2b-sandbox-port": String(PORT) };
  expect(await get({ server, host: "127.0.0.1" }, { path: "/e2b/x", headers: named })).toMatchObject({ text: "hello" });
});

test("ports with allowPublicTraffic false need the token on a server without keys too", async () => {
  const server = await startForE2b({ previewDomain: "https://sandboxes.example" });
  serveInside(server.backend, (_request, answer) => void answer.end("hello"));
  const closed = await Sandbox.create({ network: { allowPublicTraffic: false } });
  const host = await listen(server, closed);
  expect((await get({ server, host })).status).toBe(401);
  const headers = { "e2b-traffic-access-token": closed.trafficAccessToken ?? "" };
  expect(await get({ server, host }, { headers })).toMatchObject({ status: 200, text: "hello" });
});

test("a request to a port resumes a paused sandbox only with autoResume", async () => {
  const server = await startForE2b({ apiKeys: [KEY], previewDomain: "https://sandboxes.example" });
  serveInside(server.backend, (_request, answer) => void answer.end("hello"));
  const lifecycle = { onTimeout: "pause", autoResume: true } as const;
  const [plain, resumed] = [await Sandbox.create(), await Sandbox.create({ lifecycle })];
  const hosts = [await listen(server, plain), await listen(server, resumed)];
  await plain.pause();
  await resumed.setTimeout(0);
  await expect.poll(async () => (await resumed.getInfo()).state).toBe("paused");
  expect((await get({ server, host: hosts[0] ?? "" })).status).toBe(502);
  expect((await plain.getInfo()).state).toBe("paused");
  expect(await get({ server, host: hosts[1] ?? "" })).toMatchObject({ status: 200, text: "hello" });
});

test("the hosts of a domain have the control plane and the sandboxes", async () => {
  const server = await startForE2b({ apiKeys: [KEY], previewDomain: "https://sandboxes.example" });
  const headers = { "x-api-key": KEY, "content-type": "application/json" };
  const api = { server, host: "api.sandboxes.example" };
  expect((await get(api, { path: "/health" })).status).toBe(204);
  const request = { method: "POST", path: "/v2/sandboxes", headers, body: JSON.stringify({ templateID: "base" }) };
  const created = await get(api, request);
  expect(created.status).toBe(201);
  const { sandboxID, domain } = JSON.parse(created.text) as { sandboxID: string; domain: string };
  expect(domain).toBe("sandboxes.example");
  expect((await get({ server, host: `49983-${sandboxID}.${domain}` }, { path: "/health" })).status).toBe(204);
  expect((await get(api, { path: "/v1/sandboxes", headers })).status).toBe(404);
  expect((await get({ server, host: "other.sandboxes.example" }, { path: "/e2b/health" })).status).toBe(404);
});
