import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { openSocket, Socket } from "../../../src/backends/daytona/toolbox/socket.ts";
import { errorCode } from "../contract/programs.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

let server: WebSocketServer;
let url: string;

beforeEach(async () => {
  server = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong: false });
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  for (const client of server.clients) client.terminate();
  server.close();
});

test("a socket whose other end does not answer pings is closed", async () => {
  const socket = new WebSocket(url.replace("http", "ws"));
  const wrapped = new Socket(socket, 20);
  await once(socket, "open");
  expect(await Array.fromAsync(wrapped.messages())).toEqual([]);
  expect(wrapped.end).toMatchObject({ code: 1006 });
});

test("a socket that answers stays open, and its messages arrive in order, up to the close and its reason", async () => {
  server.on("connection", (client) => {
    let pings = 0;
    client.on("ping", (data) => {
      client.pong(data);
      client.send(`ping ${++pings}`);
      if (pings === 5) client.close(4000, "enough");
    });
  });
  const socket = new WebSocket(url.replace("http", "ws"));
  // Long enough for an answer on a busy machine.
  const wrapped = new Socket(socket, 1_000);
  const messages = await Array.fromAsync(wrapped.messages());
  expect(messages.map(({ data }) => data.toString("utf8"))).toEqual([1, 2, 3, 4, 5].map((count) => `ping ${count}`));
  expect(wrapped.end).toEqual({ code: 4000, reason: "enough" });
});

test("unread data stays with the sender", async () => {
  const sent = { bytes: 0 };
  server.on("connection", (client) => {
    const chunk = Buffer.alloc(64 << 10);
    const send = (): void => {
      if (sent.bytes >= 64 << 20) return client.close(1000);
      client.send(chunk, () => {
        sent.bytes += chunk.length;
        send();
      });
    };
    send();
  });
  const socket = await openSocket(url, {});
  for (let before = -1; before !== sent.bytes;) {
    before = sent.bytes;
    await meanwhile(200);
  }
  expect(sent.bytes).toBeLessThan(32 << 20);
  let received = 0;
  for await (const { data } of socket.messages()) received += data.length;
  expect(received).toBe(64 << 20);
});

test("a refusal names the path, and no header", async () => {
  server.close();
  for (const client of server.clients) client.terminate();
  const refused = openSocket(`${url}/toolbox/x?token=hidden`, { authorization: "Bearer dtn_secret" });
  expect(await errorCode(refused)).toBe("backend_unavailable");
  await expect(refused).rejects.toThrow(expect.not.objectContaining({ message: expect.stringMatching(/hidden|dtn_/) }));
});
