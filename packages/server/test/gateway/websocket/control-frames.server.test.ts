import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { openSocket } from "../../../src/backends/daytona/toolbox/socket.ts";
import { BoundedWebSocket } from "../../../src/support/bounded-web-socket.ts";
import { ProcessSocket } from "../http/processes/process-socket.ts";
import { SandboxClient } from "../http/processes/support.ts";
import { pair } from "../relay/support.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";

const MIB = 1024 * 1024;
/** Frames of one kind, as a client sends them: with a mask of zeros. */
const FRAMES = {
  "pings of one byte": Buffer.from([0x89, 0x81, 0, 0, 0, 0, 0x70]),
  "pongs that nobody has asked for": Buffer.from([0x8a, 0x80, 0, 0, 0, 0]),
  "empty messages": Buffer.from([0x82, 0x80, 0, 0, 0, 0]),
};

const LOCAL = { host: "127.0.0.1", port: 0 };

async function listening(service: WebSocketServer): Promise<WebSocketServer> {
  onTestFinished(() => service.close());
  onTestFinished(() => service.clients.forEach((client) => client.terminate()));
  await once(service, "listening");
  return service;
}

function urlOf(service: WebSocketServer): string {
  return `ws://127.0.0.1:${(service.address() as AddressInfo).port}`;
}

function tcpOf(socket: WebSocket): Socket {
  const { _socket: tcp } = socket as unknown as { _socket: Socket };
  return tcp;
}

/** Sends as fast as the server takes it, reads nothing, and gives the most that the servers kept for it. */
async function flood(socket: WebSocket, frame: Buffer, servers: readonly TestServer[]): Promise<number> {
  const tcp = tcpOf(socket);
  tcp.pause();
  const block = Buffer.concat(Array.from({ length: 2_000 }, () => frame));
  let most = 0;
  // More than three million one-byte pings; a server that keeps their pongs has 60 MB of them.
  for (let sent = 0; sent < 22 * MIB && !tcp.destroyed; sent += block.length) {
    if (!tcp.write(block)) await Promise.race([once(tcp, "drain"), once(tcp, "close")]).catch(() => {});
    const kept = servers
      .flatMap(({ sockets }) => [...sockets])
      .reduce((sum, { writableLength }) => sum + writableLength, 0);
    most = Math.max(most, kept);
  }
  await eventually("it is cut", () => tcp.destroyed);
  return most;
}

describe("a client that reads nothing and sends only frames without content is cut, and costs little memory", () => {
  test.each(Object.entries(FRAMES))("%s, in a session", async (_what, frame) => {
    const server = await startTestServer({ store: null });
    const { client, id } = await server.create();
    expect(await flood(client.socket, frame, [server])).toBeLessThan(MIB);
    await server.attachWhenFree(id);
  });

  test.each(Object.entries(FRAMES))("%s, at a process", async (_what, frame) => {
    const server = await startTestServer({ store: null });
    const box = await SandboxClient.create(server);
    const { id } = await box.spawn({ shell: "read x" });
    const socket = new ProcessSocket(`${box.url}/processes/${id}/attach`);
    await socket.event("attached");
    expect(await flood(socket.socket, frame, [server])).toBeLessThan(MIB);
  });

  test.each(Object.entries(FRAMES))("%s, through a server that passes them on", async (_what, frame) => {
    const { box, url, owner, asked } = await pair();
    const { id } = await box.spawn({ shell: "read x" });
    const socket = new ProcessSocket(`${url}/processes/${id}/attach?relay=allow`);
    await socket.event("attached");
    expect(await flood(socket.socket, frame, [owner, asked])).toBeLessThan(MIB);
  });
});

test("a service that floods the server's own socket is cut off", async () => {
  const service = await listening(new WebSocketServer(LOCAL));
  const connected = once(service, "connection");
  const socket = await openSocket(urlOf(service), {});
  const [client] = (await connected) as [WebSocket];
  client.on("error", () => {});
  for (let sent = 0; sent < 100_000; sent += 1) client.ping("", undefined, () => {});
  await Array.fromAsync(socket.messages());
  expect(socket.end).toMatchObject({ code: 1006 });
});

describe("a ping", () => {
  test("is answered with what it says", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create();
    const answer = once(client.socket, "pong");
    client.socket.ping("still there?");
    expect(String((await answer)[0])).toBe("still there?");
  });

  test("waits while much is to be sent; the last one is answered once the client reads", async () => {
    const service = await listening(new WebSocketServer({ ...LOCAL, WebSocket: BoundedWebSocket }));
    const connected = once(service, "connection");
    const client = new WebSocket(urlOf(service));
    const [[served]] = (await Promise.all([connected, once(client, "open")])) as [[WebSocket], unknown];
    const pongs: string[] = [];
    client.on("pong", (data) => pongs.push(data.toString()));
    tcpOf(client).pause();
    served.send(Buffer.alloc(32 * MIB));
    const before = served.bufferedAmount;
    const heard: string[] = [];
    served.on("ping", (data) => heard.push(data.toString()));
    for (const said of ["one", "two", "three"]) client.ping(said);
    await eventually("all are heard", () => heard.length === 3);
    expect(served.bufferedAmount).toBeLessThanOrEqual(before);
    tcpOf(client).resume();
    await eventually("one is answered", () => pongs.length > 0);
    expect(pongs).toEqual(["three"]);
  });
});

test("a client that answers every ping of the server is not cut, however many there are", async () => {
  const service = await listening(new WebSocketServer({ ...LOCAL, WebSocket: BoundedWebSocket }));
  const connected = once(service, "connection");
  const client = new WebSocket(urlOf(service));
  const [served] = (await connected) as [WebSocket];
  let pongs = 0;
  served.on("pong", () => (pongs += 1));
  for (let sent = 0; sent < 5_000; sent += 1) served.ping();
  await eventually("all are answered", () => pongs === 5_000);
  expect(client.readyState).toBe(WebSocket.OPEN);
});
