import type { RequestListener } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import type { SandboxRecord } from "@sandboxer/protocol";
import { WebSocket, WebSocketServer } from "ws";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { call, get, type Inside, NAVIGATION, open, PORT, sandboxOn, serveInside } from "./support.ts";

const hello: RequestListener = (_request, answer) => void answer.end("hello");

async function serverOf(store: string, options: TestServerOptions = {}, program = hello): Promise<TestServer> {
  const server = await startTestServer({ store, ...options });
  serveInside(server.backend, program);
  return server;
}

async function pause({ server, id }: Inside): Promise<void> {
  await call(server, "POST", `/v1/sandboxes/${id}/checkpoint`, {});
}

const record = async ({ server, id }: Inside): Promise<SandboxRecord> =>
  (await call(server, "GET", `/v1/sandboxes/${id}`)) as SandboxRecord;

test("a request to a paused sandbox resumes it once for all callers, at whichever server they ask", async () => {
  const store = await temporaryFolder();
  const [first, second] = [await serverOf(store), await serverOf(store)];
  const inside = await sandboxOn(first);
  await pause(inside);
  const asks = Array.from({ length: 20 }, (_, index) => get({ ...inside, server: index % 2 === 0 ? first : second }));
  const answers = await Promise.all(asks);
  expect(answers.map(({ status, text }) => `${status} ${text}`)).toEqual(Array.from({ length: 20 }, () => "200 hello"));
  const restores = [...first.operations, ...second.operations].filter(({ operation }) => operation === "restore");
  expect(restores.filter((operation) => operation.outcome === "ok")).toHaveLength(1);
  expect((await record(inside)).epoch).toBe(2);
});

test("a request for a sandbox on another server goes there, and the sandbox stays", async () => {
  const store = await temporaryFolder();
  const [owner, asked] = [await serverOf(store), await serverOf(store, {}, () => {})];
  const inside = await sandboxOn(owner);
  expect(await get({ ...inside, server: asked })).toMatchObject({ status: 200, text: "hello" });
  const closed = await get({ server: asked, host: `9000-${inside.id}.localhost` });
  expect(closed.status).toBe(502);
  expect(JSON.parse(closed.text)).toMatchObject({ error: { details: { listening: [PORT] } } });
  expect((await record(inside)).owner).toMatchObject({ here: true });
  expect(asked.backend.runningCount).toBe(0);
  const stranger = await fetch(`${owner.httpUrl}/v1/sandboxes/${inside.id}/connect/${PORT}`);
  expect(stranger.status).toBe(404);
});

test("clients that disconnect at once leave nothing open", async () => {
  const store = await temporaryFolder();
  const [owner, asked] = [await serverOf(store), await serverOf(store, { maxPreviews: 8 })];
  const inside = await sandboxOn(owner);
  const { hostname, port } = new URL(asked.httpUrl);
  const opening = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n";
  for (const more of ["", opening]) {
    const sockets = Array.from({ length: 20 }, () => connect(Number(port), hostname));
    await Promise.all(
      sockets.map(async (socket) => {
        await new Promise((resolve) => socket.once("connect", resolve));
        socket.end(`GET / HTTP/1.1\r\nHost: ${inside.host}\r\n${more}\r\n`, () => socket.destroy());
      }),
    );
  }
  const fresh = async (): Promise<boolean> => {
    const answers = await Promise.all([get({ ...inside, server: asked }), get({ ...inside, server: asked })]);
    return answers.every(({ status }) => status === 200);
  };
  await eventually("all places are free again", fresh);
  const live = await owner.live(inside.id);
  await eventually("nothing keeps it awake but its process", () => !live.held);
});

test("a browser gets a small page that reloads itself while the sandbox is being resumed", async () => {
  const server = await serverOf(await temporaryFolder(), { pageAfterMs: 20 });
  const inside = await sandboxOn(server);
  await pause(inside);
  const { promise: until, resolve: proceed } = Promise.withResolvers<void>();
  server.backend.faults.set("acquireFromSnapshot", { until });
  const page = await get(inside, { headers: NAVIGATION });
  expect(page).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
  expect(page.text).toContain('http-equiv="refresh"');
  proceed();
  await eventually("the reloaded page is the program's", async () => {
    const { text } = await get(inside, { headers: NAVIGATION });
    return text === "hello";
  });
});

test("requests that take too long to resume a sandbox fail with a reason, and a failed resume is not kept", async () => {
  const server = await serverOf(await temporaryFolder(), { wakeTimeoutMs: 100 });
  const inside = await sandboxOn(server);
  await pause(inside);
  const { promise: until, resolve: proceed } = Promise.withResolvers<void>();
  server.backend.faults.set("acquireFromSnapshot", { until });
  const late = await get(inside);
  expect(late.status).toBe(504);
  expect(late.text).toContain("--wake-timeout");
  proceed();
  await eventually("it is resumed", async () => (await get(inside)).text === "hello");
});

test("a hundred paused previews with concurrent requests are all resumed, a few at a time", async () => {
  const server = await serverOf(await temporaryFolder(), { maxWakes: 2, wakeTimeoutMs: 170_000, leaseTtlMs: 600_000 });
  const all = await Promise.all(Array.from({ length: 100 }, () => sandboxOn(server)));
  await Promise.all(all.map(pause));
  let [restoring, most] = [0, 0];
  const acquire = server.backend.acquireFromSnapshot.bind(server.backend);
  server.backend.acquireFromSnapshot = async (...given) => {
    restoring += 1;
    most = Math.max(most, restoring);
    try {
      return await acquire(...given);
    } finally {
      restoring -= 1;
    }
  };
  const answers = await Promise.all(all.map((inside) => get(inside)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(most).toBeLessThanOrEqual(2);
  expect(server.backend.runningCount).toBe(100);
});

test("a sandbox that a request resumed pauses again without requests; an open connection keeps it running", async () => {
  const store = await temporaryFolder();
  const server = await serverOf(store, {}, (request, answer) => {
    answer.write("begun");
    if (request.url === "/") answer.end();
  });
  const inside = await sandboxOn(server);
  await pause(inside);
  await call(server, "PATCH", `/v1/sandboxes/${inside.id}`, { idle_timeout: 0.3 });
  const streaming = await open(inside, { path: "/stream" });
  await new Promise((resolve) => streaming.once("data", resolve));
  const live = await server.live(inside.id);
  expect(live.isIdle(Number.MAX_SAFE_INTEGER)).toBe(false);
  streaming.destroy();
  await eventually("it is paused again", async () => (await record(inside)).state === "stored");
  expect((await get(inside)).text).toBe("begun");
  await eventually("it is paused again", async () => (await record(inside)).state === "stored");
});

test("a sandbox that is encrypted with a client's key is not resumed without it", async () => {
  const server = await serverOf(await temporaryFolder());
  const key = Buffer.alloc(32, 7).toString("base64");
  const made = await fetch(`${server.httpUrl}/v1/sandboxes`, {
    method: "POST",
    headers: { "sandboxer-encryption-key": key },
  });
  const { id } = (await made.json()) as { id: string };
  await call(server, "POST", `/v1/sandboxes/${id}/checkpoint`, {});
  const inside = { server, host: `${PORT}-${id}.localhost` };
  const refused = await get(inside);
  expect(refused.status).toBe(403);
  expect(JSON.parse(refused.text)).toMatchObject({ error: { code: "key_required" } });
  expect(refused.text).toContain("--encryption-key-file");
  // Nothing listens in it, which is known only after it was resumed.
  expect((await get(inside, { headers: { "sandboxer-encryption-key": key } })).status).toBe(502);
});

test("a WebSocket resumes a paused sandbox too, also through another server, and ends when the sandbox is paused", async () => {
  const store = await temporaryFolder();
  const [owner, asked] = [await startTestServer({ store }), await startTestServer({ store })];
  for (const { backend } of [owner, asked]) {
    new WebSocketServer({ server: serveInside(backend, hello) }).on("connection", (socket) => socket.send("hi"));
  }
  const inside = await sandboxOn(owner);
  const hears = async (server: TestServer): Promise<WebSocket> => {
    const { port } = new URL(server.httpUrl);
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { host: `${inside.host}:${port}` } });
    const heard = Promise.withResolvers<unknown>();
    socket.once("message", heard.resolve).once("error", heard.reject);
    expect(String(await heard.promise)).toBe("hi");
    return socket;
  };
  await pause(inside);
  await hears(owner);
  const relayed = await hears(asked);
  expect(asked.backend.runningCount).toBe(0);
  const closed = new Promise((resolve) => relayed.once("close", resolve));
  await pause(inside);
  await closed;
});
