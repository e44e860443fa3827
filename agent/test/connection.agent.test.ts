import { type AddressInfo, type Server, type Socket, createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import { type TestAgent, startAgent } from "./support/agent.ts";
import { Type, str, u16, u32, u64 } from "./support/wire.ts";
import { meanwhile } from "../../test/kit/meanwhile.ts";

let server: Server | undefined;
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server?.close();
});

async function listen(serve: (socket: Socket) => void): Promise<number> {
  server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    serve(socket);
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const connect = async (agent: TestAgent, port: number) => (await agent.call(Type.connect, u16(port))).readUInt32LE();
const window = (agent: TestAgent, id: number, limit: number) => agent.call(Type.connectionWindow, u32(id), u64(limit));
const data = (agent: TestAgent) => agent.events.filter((event) => event.type === Type.connectionData);
const received = (agent: TestAgent) => Buffer.concat(data(agent).map((event) => event.payload.subarray(4)));
const closed = (agent: TestAgent) =>
  agent.events.find((event) => event.type === Type.connectionClosed)?.payload.readUInt32LE(4);

test("bytes flow in both directions, and an orderly end on both sides closes the connection", async () => {
  const agent = await startAgent();
  const port = await listen((socket) => {
    socket.on("data", (bytes) => socket.write(bytes.toString().toUpperCase()));
    socket.on("end", () => socket.end("bye"));
  });
  const id = await connect(agent, port);
  await agent.call(Type.connectionWrite, u32(id), Buffer.from("hello "));
  await meanwhile(50);
  expect(data(agent)).toEqual([]);
  await window(agent, id, 1000);
  await agent.until("the answer", () => received(agent).toString() === "HELLO ");
  await agent.call(Type.connectionWrite, u32(id));
  await agent.until("the end", () => closed(agent) === 0);
  expect(received(agent).toString()).toBe("HELLO bye");
  expect(data(agent).at(-1)?.payload.length).toBe(4);
  expect(await agent.failure(Type.connectionWrite, u32(id), Buffer.from("x"))).toBe(107);
});

test("the window limits the bytes that are sent to the host", async () => {
  const agent = await startAgent();
  const id = await connect(agent, await listen((socket) => socket.write(Buffer.alloc(3_000_000, "z"))));
  let limit = 0;
  for (limit = 100_000; limit <= 3_000_000; limit += 580_000) {
    await window(agent, id, limit);
    const wanted = limit;
    await agent.until("the window's worth", () => received(agent).length === wanted);
    await agent.ping();
    expect(received(agent).length).toBe(limit);
  }
});

test("a slow peer delays the reply; a second write meanwhile is EBUSY", async () => {
  const agent = await startAgent();
  let peer: Socket | undefined;
  const port = await listen((socket) => (peer = socket.pause()));
  const id = await connect(agent, port);
  let done = 0;
  const writes = (async () => {
    for (let count = 0; count < 20; count++) {
      await agent.call(Type.connectionWrite, u32(id), Buffer.alloc(1_000_000));
      done++;
    }
  })();
  let seen = 0;
  const standsStill = (): boolean => {
    const [before, now] = [seen, done];
    seen = now;
    return now > 0 && now === before;
  };
  await expect.poll(standsStill, { interval: 300, timeout: 20_000 }).toBe(true);
  expect(done).toBeLessThan(20);
  expect(await agent.failure(Type.connectionWrite, u32(id), Buffer.from("x"))).toBe(16);
  let size = 0;
  peer?.on("data", (bytes) => (size += bytes.length)).resume();
  await writes;
  await agent.until("all bytes", () => size === 20_000_000);
});

test("connections that are refused, reset or closed by the host report it", async () => {
  const agent = await startAgent();
  expect(await agent.failure(Type.connect, u16(1))).toBe(111);
  expect(await agent.failure(Type.connect, u16(0))).toBe(22);
  expect(await agent.failure(Type.connectionClose, u32(9))).toBe(107);
  expect(await agent.failure(Type.connectionWindow, u32(9), u64(1))).toBe(107);
  const ended: Promise<void>[] = [];
  let peer: Socket | undefined;
  const port = await listen((socket) => {
    peer = socket.resume();
    ended.push(new Promise((resolve) => socket.on("end", resolve)));
  });
  const first = await connect(agent, port);
  await agent.call(Type.connectionClose, u32(first));
  await agent.until("the peer's view", () => ended.length === 1);
  await ended[0];
  expect(agent.events.some((event) => event.type === Type.connectionClosed)).toBe(false);
  const second = await connect(agent, port);
  await agent.until("a peer", () => ended.length === 2);
  await window(agent, second, 10);
  peer?.resetAndDestroy();
  await agent.until("the reset", () => closed(agent) === 104);
});

test("connections pause while quiesced and are closed by RESTORED", async () => {
  const agent = await startAgent();
  let over = false;
  const port = await listen((socket) => {
    socket.on("data", (bytes) => socket.write(bytes));
    socket.on("close", () => (over = true)).on("end", () => (over = true));
  });
  const id = await connect(agent, port);
  await window(agent, id, 100);
  await agent.call(Type.connectionWrite, u32(id), Buffer.from("ping"));
  await agent.until("echo", () => received(agent).length === 4);
  await agent.call(Type.quiesce);
  sockets[0]?.write("more");
  await meanwhile(60);
  expect(received(agent).length).toBe(4);
  await agent.call(Type.resume);
  await agent.until("the rest", () => received(agent).length === 8);
  await agent.call(Type.quiesce);
  await agent.call(Type.restored, u64(1), str(""), str(""));
  await agent.until("the end", () => over);
  expect(await agent.failure(Type.connectionClose, u32(id))).toBe(107);
});

test("at most 256 connections are open", async () => {
  const agent = await startAgent();
  const port = await listen(() => {});
  await Promise.all(Array.from({ length: 256 }, () => connect(agent, port)));
  expect(await agent.failure(Type.connect, u16(port))).toBe(11);
});
